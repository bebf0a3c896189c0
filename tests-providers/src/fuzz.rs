//! Mutated replies, sent to the adapters.
//!
//! An adapter must never panic, hang or need memory out of proportion to a reply, whatever a server sends. If it accepts a
//! reply, the reply has to meet the rules of [`check`]. The seed, the wire format and the number of a case determine the
//! case, so that it can be repeated alone.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use helix_agents_llm::ApiFormat;

use crate::case::Case;
use crate::{memory, play, replay};
use body::Body;
use input::{Input, Sample};
use player::Player;
use pool::Pool;

mod body;
mod check;
mod input;
mod mutate;
mod player;
mod pool;
mod tree;

/// The wire formats and their names in recordings.
const FORMATS: [(&str, &str); 5] = [
    ("openai_chat", "chat"),
    ("openai_responses", "responses"),
    ("anthropic_messages", "messages"),
    ("gemini_generate", "generate"),
    ("bedrock_converse", "converse"),
];

/// The folder of the inputs that broke a rule.
const FOLDER: &str = "target/fuzz";

/// The memory of a call that does not depend on the reply, such as the buffers of a connection.
const MEMORY: usize = 2 * 1024 * 1024;

/// The memory of a call for each byte of a reply. Trees of small JSON values need most.
const MEMORY_PER_BYTE: usize = 250;

/// The number of broken rules after which no further cases of a wire format are played.
const MAX_PROBLEMS: usize = 10;

/// The cases to play.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// The only wire format, or all of them.
    pub(crate) format: Option<String>,
    /// The only case, or all of them.
    pub(crate) case: Option<u64>,
    /// The number of cases of each wire format, if it does not depend on the time.
    pub(crate) cases: Option<u64>,
    /// The time for each wire format.
    pub(crate) time: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self { seed: 1, format: None, case: None, cases: None, time: Duration::from_secs(60) }
    }
}

/// Plays mutated replies, and returns the number of broken rules.
pub(crate) fn run(recorded: &[Case], plan: &Plan) -> Result<usize> {
    if let Some(name) = &plan.format
        && FORMATS.iter().all(|(format, _)| format != name)
    {
        let names = FORMATS.map(|(format, _)| format).join(", ");
        bail!("there is no wire format `{name}`; the formats are {names}");
    }
    fs::create_dir_all(FOLDER).with_context(|| format!("could not create {FOLDER}"))?;
    let mut problems = 0;
    for (name, api) in FORMATS {
        if plan.format.as_ref().is_none_or(|format| format == name) {
            let samples = samples(recorded, api);
            let Some(format) = play::format(api) else { continue };
            if samples.is_empty() {
                bail!("there is no recorded reply of `{name}`");
            }
            problems += Format { name, format, samples }.run(plan)?;
        }
    }
    Ok(problems)
}

fn samples(recorded: &[Case], api: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    for case in recorded {
        for (number, exchange) in case.exchanges.iter().enumerate() {
            if exchange.api == api {
                samples.push(Sample {
                    name: format!("{}[{number}]", case.name),
                    status: exchange.status,
                    body: Body::of(&exchange.reply),
                });
            }
        }
    }
    samples
}

/// A wire format, with its recorded replies.
struct Format {
    name: &'static str,
    format: ApiFormat,
    samples: Vec<Sample>,
}

/// The counts of a wire format.
#[derive(Debug, Default)]
struct Totals {
    cases: u64,
    accepted: u64,
    /// The greatest memory that a call needed, in bytes for each byte of the reply.
    memory: usize,
    /// The kinds of problems. One kind is reported once.
    problems: BTreeSet<String>,
}

impl Format {
    fn run(&self, plan: &Plan) -> Result<usize> {
        let pool = Pool::of(self.samples.iter().map(|sample| &sample.body));
        // If a case ends the process, for instance by a stack overflow, this file names it.
        let current = Path::new(FOLDER).join(format!("{}.running", self.name));
        let mut running = File::create(&current)?;
        let mut player = Player::new(self.format.clone())?;
        let mut totals = Totals::default();
        let started = Instant::now();
        let mut case = plan.case.unwrap_or_default();
        while let Some(input) = Input::of_case(&self.samples, &pool, plan.seed, case) {
            running.rewind()?;
            writeln!(running, "--seed {:<20} --case {case:<20}", plan.seed)?;
            if let Err(problem) = play_case(&player, &input, &mut totals) {
                self.report(plan.seed, case, &input, &problem, &mut totals)?;
                player = Player::new(self.format.clone())?;
            }
            case += 1;
            let is_last = match plan.cases {
                _ if plan.case.is_some() => true,
                Some(cases) => case >= cases,
                None => started.elapsed() >= plan.time,
            };
            if is_last || totals.problems.len() >= MAX_PROBLEMS {
                break;
            }
        }
        fs::remove_file(current)?;
        println!(
            "{}: {} cases from {} replies with seed {} in {:.0} s; {} accepted; at most {} bytes of memory for a byte \
             of a reply; {} problems",
            self.name,
            totals.cases,
            self.samples.len(),
            plan.seed,
            started.elapsed().as_secs_f64(),
            totals.accepted,
            totals.memory,
            totals.problems.len()
        );
        Ok(totals.problems.len())
    }

    /// Prints a problem and writes its input, unless another case has shown the same problem.
    fn report(
        &self,
        seed: u64,
        case: u64,
        input: &Input,
        problem: &str,
        totals: &mut Totals,
    ) -> Result<()> {
        // Numbers differ between cases with the same problem.
        let kind: String =
            problem.chars().filter(|character| !character.is_ascii_digit()).collect();
        if !totals.problems.insert(kind) {
            return Ok(());
        }
        let file = |extension: &str| -> PathBuf {
            Path::new(FOLDER).join(format!("{}-{seed}-{case}.{extension}", self.name))
        };
        fs::write(file("body"), &input.body)?;
        fs::write(file("txt"), format!("{problem}\n\n{}", input.describe()))?;
        println!(
            "{} --seed {seed} --case {case}: {problem}; see {}",
            self.name,
            file("txt").display()
        );
        Ok(())
    }
}

/// Plays a case, and returns the first problem.
fn play_case(player: &Player, input: &Input, totals: &mut Totals) -> check::Checked {
    totals.cases += 1;
    player.prepare(input);
    let listener = check::Listener::default();
    let (played, bytes) = memory::measured(|| player.play(input, &listener));
    let result = played?;
    let per_byte = bytes.saturating_sub(MEMORY) / input.body.len().max(1);
    totals.memory = totals.memory.max(per_byte);
    if per_byte > MEMORY_PER_BYTE {
        let length = input.body.len();
        return Err(format!("a reply of {length} bytes needs {bytes} bytes of memory"));
    }
    let Some(message) = check::response(result, &listener)? else { return Ok(()) };
    totals.accepted += 1;
    let mut messages = vec![play::question()];
    replay::add(message.clone(), &mut messages).map_err(|error| error.to_string())?;
    check::request(&player.request(&messages)?, &message)
}
