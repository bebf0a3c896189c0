//! Carries out the runs of agents on Temporal.
