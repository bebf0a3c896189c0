//! The jobs of measured processes and their outcomes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod subject;

pub(crate) use subject::{Engine, Store, Subject};

/// The encoding of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Wire {
    /// One JSON document. Only Chat Completions supports it.
    Json,
    /// Server-sent events or binary frames, which is the default of the adapters.
    Sse,
}

/// The wire format of the model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    OpenaiChat,
    OpenaiResponses,
    AnthropicMessages,
    GeminiGenerate,
    BedrockConverse,
}

impl Format {
    /// All wire formats. Chat Completions, with which the others are compared, is the first one.
    pub(crate) const ALL: [Self; 5] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::GeminiGenerate,
        Self::BedrockConverse,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::OpenaiResponses => "openai_responses",
            Self::AnthropicMessages => "anthropic_messages",
            Self::GeminiGenerate => "gemini_generate",
            Self::BedrockConverse => "bedrock_converse",
        }
    }

    /// Returns the wire format whose adapter adds a path with this first segment to the base URL.
    pub(crate) fn of_path(segment: &str) -> Option<Self> {
        Some(match segment {
            "chat" => Self::OpenaiChat,
            "responses" => Self::OpenaiResponses,
            "messages" => Self::AnthropicMessages,
            "models" => Self::GeminiGenerate,
            "model" => Self::BedrockConverse,
            _ => return None,
        })
    }
}

/// The way in which the model submits the final object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ending {
    /// As the reply, with the response format `json_schema`.
    Native,
    /// With a call of `__finish__`.
    Finish,
}

/// The work of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Work {
    /// Calls of `add`, one per step, and then the final object.
    Tools {
        /// The number of tool calls; the run has one more model call.
        calls: u32,
        /// The time that the model takes for each reply.
        delay_ms: u64,
        /// The form of the final object.
        ending: Ending,
    },
    /// One text reply in chunks.
    Text {
        /// The number of chunks.
        chunks: u32,
        /// The number of chunks that the server writes at once.
        per_write: u32,
    },
    /// One call of a client tool, for which the run is suspended.
    Suspend,
}

impl Work {
    /// Ten tool calls and a native object: the run with which all frameworks were measured.
    pub(crate) const USUAL: Self = Self::tools(10);

    /// Returns a run with tool calls, without delay, and with a native object.
    pub(crate) const fn tools(calls: u32) -> Self {
        Self::Tools { calls, delay_ms: 0, ending: Ending::Native }
    }

    /// Returns the same work with another number of tool calls.
    pub(crate) const fn with_calls(self, calls: u32) -> Self {
        match self {
            Self::Tools { delay_ms, ending, .. } => Self::Tools { calls, delay_ms, ending },
            other => other,
        }
    }

    /// Returns the number of model calls of one run.
    pub(crate) const fn steps(self) -> u32 {
        match self {
            Self::Tools { calls, .. } => calls + 1,
            Self::Text { .. } | Self::Suspend => 1,
        }
    }

    /// Returns the path of this work on the server.
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
            // The tool result is never submitted, so the model is not called again.
            Self::Suspend => Self::tools(1).path(),
        }
    }
}

/// One measurement, which a separate process makes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) subject: Subject,
    pub(crate) format: Format,
    pub(crate) wire: Wire,
    pub(crate) work: Work,
    /// The server's port.
    pub(crate) port: u16,
    /// The number of warm-up runs.
    pub(crate) warm: u32,
    /// The number of measured runs.
    pub(crate) runs: u32,
    /// The number of concurrent runs.
    pub(crate) at_once: u32,
    /// The number of threads that share the runs evenly.
    pub(crate) threads: u32,
    /// Whether to run on the server's processor, so that neither process waits for an idle
    /// processor to wake up.
    pub(crate) same_processor: bool,
    /// An empty folder for a database.
    pub(crate) folder: PathBuf,
    /// Whether to measure the footprint of the runs in the store.
    pub(crate) inspect: bool,
    /// Whether an observer makes the spans and metrics of the runs. Only for the local runtime.
    pub(crate) telemetry: bool,
}

impl Job {
    /// Returns the base URL of the model server.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.work.path())
    }

    /// Returns the number of measured model calls.
    pub(crate) fn steps(&self) -> u64 {
        u64::from(self.runs) * u64::from(self.work.steps())
    }
}

/// The outcome of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The time from the start of the first measured run to the end of the last one.
    pub(crate) wall_ns: u64,
    /// The processor time of the measured runs, over all threads, in user and kernel mode.
    pub(crate) cpu_ns: u64,
    /// The processor time since the start of the process.
    pub(crate) whole_cpu_ns: u64,
    /// The median time of one run, from its start to its checked result.
    pub(crate) run_ns_median: u64,
    /// The peak memory of the process.
    pub(crate) peak_bytes: u64,
    /// The footprint of the runs in the store, if it was requested.
    pub(crate) footprint: Option<Footprint>,
}

/// The footprint of runs in a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Footprint {
    /// The appends of the first session's log, by step.
    pub(crate) steps: Vec<StepAppends>,
    pub(crate) traces: Traces,
    pub(crate) engine: EngineTraces,
}

/// The footprint of runs in the engine that executed them, in addition to the store.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct EngineTraces {
    /// The number of rows of DBOS's workflows and steps, or of events of a Temporal history.
    pub(crate) rows: u64,
    /// The size of these rows or events, without indexes.
    pub(crate) bytes: u64,
}

/// The footprint of runs in a database, as the database reports it.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Traces {
    /// The number of rows of sessions and logs. For Redis, stream entries, and other keys as one
    /// row each.
    pub(crate) rows: u64,
    /// The number of rows of streams, counted in the same way.
    pub(crate) stream_rows: u64,
    /// The bytes that were written for durability: the write-ahead log or the append-only file.
    pub(crate) written_bytes: u64,
    /// The bytes that are stored, including indexes: on disk, or in memory for Redis.
    pub(crate) kept_bytes: u64,
}

/// The footprint of one step in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepAppends {
    pub(crate) appends: u64,
    pub(crate) bytes: u64,
}

/// The statistics of the server since the last reset.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// The number of requests that did not match the model's last reply.
    pub(crate) bad: u64,
    /// The statistics by the number of tool results in the request.
    pub(crate) steps: Vec<SeenStep>,
}

/// The statistics of one step.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct SeenStep {
    /// The size of the request body.
    pub(crate) body_bytes: u64,
    /// The minimum and the median time from the readiness of the previous reply to the end of this
    /// request.
    pub(crate) gap_ns_min: u64,
    pub(crate) gap_ns_median: u64,
}
