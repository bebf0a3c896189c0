//! What the driver asks of a measured process, and what that answers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod subject;

pub(crate) use subject::{Engine, Store, Subject};

/// How replies come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wire {
    /// As one document.
    Json,
    /// As server-sent events, which is what the adapter asks for unless told otherwise.
    Sse,
}

/// How the model hands in the final object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ending {
    /// As its reply, by the response format `json_schema`.
    Native,
    /// By a call of `__finish__`.
    Finish,
}

/// What one run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// This many calls of `add`, one per step, then the final object.
    Tools {
        /// Tool calls; the run has one model call more.
        calls: u32,
        /// How long the model takes for each reply.
        delay_ms: u64,
        /// How the final object comes.
        ending: Ending,
    },
    /// One reply of text in this many chunks.
    Text {
        /// Chunks of the reply.
        chunks: u32,
        /// Chunks that the server writes at once.
        per_write: u32,
    },
    /// One call of a tool that a person carries out, for which the run is suspended.
    Suspend,
}

impl Work {
    /// Ten tool calls and a native object: the run that all frameworks were measured with.
    pub(crate) const USUAL: Self = Self::tools(10);

    /// Tool calls without delay and a native object.
    pub(crate) const fn tools(calls: u32) -> Self {
        Self::Tools { calls, delay_ms: 0, ending: Ending::Native }
    }

    /// How many model calls one run makes.
    pub(crate) const fn steps(self) -> u32 {
        match self {
            Self::Tools { calls, .. } => calls + 1,
            Self::Text { .. } | Self::Suspend => 1,
        }
    }

    /// Where on the server this is done.
    pub(crate) fn path(self) -> String {
        match self {
            Self::Tools { calls, delay_ms, ending } => {
                let ending = match ending {
                    Ending::Native => "native",
                    Ending::Finish => "finish",
                };
                format!("/tools/{calls}/{delay_ms}/{ending}/v1")
            }
            Self::Text { chunks, per_write } => format!("/text/{chunks}/{per_write}/v1"),
            // Nobody gives the result, so the model is not asked again.
            Self::Suspend => Self::tools(1).path(),
        }
    }
}

/// One measurement, made by a process of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) subject: Subject,
    pub(crate) wire: Wire,
    pub(crate) work: Work,
    /// The server's port.
    pub(crate) port: u16,
    /// Runs before the measured ones.
    pub(crate) warm: u32,
    /// Runs that are measured.
    pub(crate) runs: u32,
    /// How many runs are under way at once.
    pub(crate) at_once: u32,
    /// Threads that share the runs evenly.
    pub(crate) threads: u32,
    /// Whether to stay on the server's processor, so that neither waits for an idle one to wake.
    pub(crate) beside: bool,
    /// An empty folder for a database.
    pub(crate) folder: PathBuf,
    /// Whether to look at what the runs left in the store.
    pub(crate) inspect: bool,
}

impl Job {
    /// The address that an OpenAI client wants.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.work.path())
    }

    /// The measured model calls.
    pub(crate) fn steps(&self) -> u64 {
        u64::from(self.runs) * u64::from(self.work.steps())
    }
}

/// What a measured process found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// From the first measured run's start to the last one's end.
    pub(crate) wall_ns: u64,
    /// What the process used meanwhile, on all its threads, in the program and the kernel.
    pub(crate) cpu_ns: u64,
    /// What the process used since it was started.
    pub(crate) whole_cpu_ns: u64,
    /// One run, from its start to its checked answer.
    pub(crate) run_ns_median: u64,
    /// The most memory that the process ever had.
    pub(crate) peak_bytes: u64,
    /// What the runs left in the store, if that was asked for.
    pub(crate) left: Option<Left>,
}

/// What runs left in a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Left {
    /// Appends of the first session's log, by the step that they belong to.
    pub(crate) steps: Vec<StepAppends>,
    pub(crate) traces: Traces,
    pub(crate) engine: EngineTraces,
}

/// What runs left with the engine that carried them out, beside the store.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct EngineTraces {
    /// Rows of DBOS's workflows and their steps, or events of a Temporal history.
    pub(crate) rows: u64,
    /// Those of the rows or events, without indexes.
    pub(crate) bytes: u64,
}

/// What runs left in a database, as it says itself.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Traces {
    /// Rows of sessions and their logs; of Redis, keys that are one value and entries of the others.
    pub(crate) rows: u64,
    /// Rows of streams, likewise.
    pub(crate) stream_rows: u64,
    /// What was written ahead to make it durable: the write-ahead log, or the append-only file.
    pub(crate) written_bytes: u64,
    /// What it keeps, indexes included: on disk, or of Redis in memory.
    pub(crate) kept_bytes: u64,
}

/// What one step left in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepAppends {
    pub(crate) appends: u64,
    pub(crate) bytes: u64,
}

/// What the server saw since it was last asked to forget.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// Requests that were not what the model's last reply asked for.
    pub(crate) bad: u64,
    /// By the number of tool results in the request.
    pub(crate) steps: Vec<SeenStep>,
}

/// What the server saw of one step.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SeenStep {
    /// The size of its request's body.
    pub(crate) body_bytes: u64,
    /// From when the reply before was ready to the end of this request, at best and usually.
    pub(crate) gap_ns_min: u64,
    pub(crate) gap_ns_median: u64,
}
