//! The tiers of tests: what runs for every change, in CI, and before a release.

/// A selection of the tests. `.config/nextest.toml` has a profile with the filter of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    /// Tests without a server and without the network, for every change.
    Quick,
    /// Every crate, every runtime and every store, but not all their combinations. CI runs this.
    Gate,
    /// All tests of the workspace, on every runtime and every store.
    Deep,
}

/// The packages of the quick tier. The drivers of PostgreSQL and Redis and the SDK of Temporal would take most of its
/// time to compile.
const QUICK: &[&str] = &[
    "helix-agents",
    "helix-agents-agent-file",
    "helix-agents-client",
    "helix-agents-core",
    "helix-agents-llm",
    "helix-agents-macros",
    "helix-agents-planner",
    "helix-agents-runtime-local",
    "helix-agents-server",
    "helix-agents-sse",
    "helix-agents-store-memory",
    "helix-agents-store-sqlite",
    "helix-agents-terminal",
    "helix-agents-test",
    "helix-agents-tools",
];

/// Other packages whose tests need no server. The gate has them, because the quick tier would take a third longer.
const WITHOUT_SERVERS: &[&str] = &[
    "helix-agents-conformance",
    "helix-agents-demo",
    "helix-agents-protocols",
    "helix-agents-runtime",
    "helix-agents-testkit",
    "helix-agents-tests-providers",
];

/// The features of the facade in the quick tier, besides the default ones. Pages of the guide use them.
const FEATURES: &str =
    "helix-agents/client,helix-agents/planner,helix-agents/server,helix-agents/test";

impl Tier {
    pub(crate) const ALL: [Self; 3] = [Self::Quick, Self::Gate, Self::Deep];

    /// Returns the name of the profile in `.config/nextest.toml`.
    pub(crate) fn profile(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Gate => "gate",
            Self::Deep => "deep",
        }
    }

    /// Returns the path of nextest's report of the last run.
    pub(crate) fn report(self) -> String {
        format!("target/nextest/{}/junit.xml", self.profile())
    }

    /// Returns the arguments that select the packages and their features.
    pub(crate) fn packages(self) -> Vec<&'static str> {
        match self {
            Self::Quick => {
                let packages = QUICK.iter().flat_map(|package| ["--package", package]);
                packages.chain(["--features", FEATURES]).collect()
            }
            Self::Gate | Self::Deep => vec!["--workspace", "--all-features"],
        }
    }
}

/// The tests that the arguments of `cargo xtask test` select.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Selection<'a> {
    pub tier: Tier,
    /// The arguments that select packages.
    pub packages: Vec<&'a str>,
    /// The other arguments of nextest.
    pub args: Vec<&'a str>,
}

impl<'a> Selection<'a> {
    /// Reads the arguments. Without a tier they select the quick tier, or all tests of the packages that they name.
    pub(crate) fn read(args: &[&'a str]) -> Self {
        let (mut tier, mut packages, mut others) = (None, Vec::new(), Vec::new());
        let mut args = args.iter().copied();
        while let Some(arg) = args.next() {
            match arg {
                "--gate" => tier = Some(Tier::Gate),
                "--deep" => tier = Some(Tier::Deep),
                "-p" | "--package" => {
                    packages.push("--package");
                    packages.extend(args.next());
                }
                other => others.push(other),
            }
        }
        let tier = tier.unwrap_or(if packages.is_empty() { Tier::Quick } else { Tier::Deep });
        if packages.is_empty() {
            packages = tier.packages();
        } else {
            packages.push("--all-features");
        }
        Self { tier, packages, args: others }
    }

    /// Returns `true` if the selection has all packages.
    pub(crate) fn has_whole_workspace(&self) -> bool {
        self.packages.contains(&"--workspace")
    }

    /// Returns `true` if some tests need a server or another program.
    pub(crate) fn needs_servers(&self) -> bool {
        let needs_none = |arg: &&str| {
            let is_package = QUICK.contains(arg) || WITHOUT_SERVERS.contains(arg);
            is_package || arg.starts_with('-') || *arg == FEATURES
        };
        self.has_whole_workspace() || !self.packages.iter().all(needs_none)
    }
}
