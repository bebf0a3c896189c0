//! A server that authenticates its users by JSON Web Tokens (JWT): your own `Authorizer` verifies the signature, and
//! takes the user and the rights from the claims. `token NAME [operator]` prints a token, as your login service would,
//! and `serve` serves until its standard input ends. The example uses the configured model, or a scripted one if none is
//! configured.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::fmt;
use std::sync::Arc;

use anyhow::{Result, bail};
use async_trait::async_trait;
use helix_agents::prelude::*;
use helix_agents::server::{Action, AgentServer, Authorizer, Principal, Refusal, Scope};
use helix_agents_test::{Reply, ScriptedLlm};
use http::header::AUTHORIZATION;
use http::request::Parts;
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, Validation, decode, encode, get_current_timestamp,
};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

/// The issuer that the server trusts.
const ISSUER: &str = "https://login.example.com";

/// The name of this server. A token for another server is not valid here.
const AUDIENCE: &str = "agents";

/// The validity of a token in seconds.
const VALIDITY: u64 = 600;

/// The variable with the secret that the login service and the server share.
const SECRET: &str = "JWT_SECRET";

/// The claims of a token.
#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    /// The user, who owns the sessions that the token creates.
    sub: String,
    /// The time at which the token expires, in seconds since 1970.
    exp: u64,
    /// `operator` for access to the sessions of all users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

/// Verifies tokens with a shared secret. With the public key of an issuer, the key is
/// `DecodingKey::from_ed_pem` and the algorithm `EdDSA`; the server then cannot issue tokens itself.
struct JwtAuthorizer {
    key: DecodingKey,
    validation: Validation,
}

impl JwtAuthorizer {
    fn new(secret: &str) -> Result<Self> {
        // The algorithm is fixed here. That of the token's header is chosen by its sender.
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_issuer(&[ISSUER]);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.leeway = 0;
        Ok(Self { key: DecodingKey::from_secret(secret.as_bytes())?, validation })
    }
}

impl fmt::Debug for JwtAuthorizer {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtAuthorizer").finish_non_exhaustive()
    }
}

#[async_trait]
impl Authorizer for JwtAuthorizer {
    async fn authorize(&self, request: &Parts, _: Action) -> Result<Principal, Refusal> {
        let header = request.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix("Bearer "));
        let token = token.ok_or(Refusal::Unauthenticated)?;
        let decoded = decode::<Claims>(token, &self.key, &self.validation);
        let claims = decoded.map_err(|_| Refusal::Unauthenticated)?.claims;
        let user = Principal::new(claims.sub).ok_or(Refusal::Unauthenticated)?;
        Ok(match claims.role.as_deref() {
            Some("operator") => user.with_scope(Scope::AllSessions).with_scope(Scope::ReadLogs),
            _ => user,
        })
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Ok(secret) = std::env::var(SECRET) else { bail!("set {SECRET} to a random text") };
    match command.as_slice() {
        ["token", name] => println!("{}", token(&secret, name, None)?),
        ["token", name, role] => println!("{}", token(&secret, name, Some(role))?),
        ["serve"] => serve(&secret).await?,
        _ => bail!("usage: jwt token NAME [operator] | serve"),
    }
    Ok(())
}

/// Issues a token, as a login service does after it has authenticated the user.
fn token(secret: &str, name: &str, role: Option<&str>) -> Result<String> {
    let claims = Claims {
        iss: ISSUER.to_owned(),
        aud: AUDIENCE.to_owned(),
        sub: name.to_owned(),
        exp: get_current_timestamp() + VALIDITY,
        role: role.map(str::to_owned),
    };
    let key = EncodingKey::from_secret(secret.as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), &claims, &key)?)
}

async fn serve(secret: &str) -> Result<()> {
    let models = ProviderRegistry::from_env()?.or_adapter("script", script());
    eprintln!("the model is {}", models.default_model()?);
    let agents = AgentRegistry::default();
    agents.register(&Agent::builder("guide").system_prompt("You know cities.").build()?)?;
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder().store(store.clone()).llm(models);
    let runtime = runtime.registry(agents.clone()).build()?;
    let server = AgentServer::builder(Arc::new(runtime), agents, store)
        .authorize(JwtAuthorizer::new(secret)?)
        .build()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let until_input_ends = async { drop(tokio::io::stdin().read_to_end(&mut Vec::new()).await) };
    server.serve(listener, until_input_ends).await?;
    Ok(())
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([Reply::text("It is Oslo.")])
}
