//! Stores that lose acknowledged operations. The durability suite must detect each of them.

mod eager;
mod lazy;
