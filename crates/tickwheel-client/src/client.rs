//! The client: which servers, which key, and one place from which all calls start.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderValue, Method};
use tickwheel_protocol::{Job, ServerInfo};
use url::Url;
use uuid::Uuid;

use crate::call::Call;
use crate::error::Error;
use crate::handle::JobHandle;
use crate::job_type::JobType;
use crate::repeat::{Repeat, repeated};
use crate::schedules::Schedules;
use crate::settings::Environment;
use crate::submit::{NewJob, Submit, submit_many};
use crate::testing::Recorder;
use crate::transport::{Http, pool};
use crate::workflows::Workflows;

/// The server that is called when nothing else is said.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7180";

/// A client of one server, or of several that serve the same store. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    options: ClientOptions,
    servers: Vec<Url>,
    /// Which server answered last.
    current: AtomicUsize,
    key: Mutex<Option<HeaderValue>>,
    pub(crate) http: Http,
    /// Keeps submissions instead of sending them.
    pub(crate) recorder: Option<Recorder>,
}

/// How a client finds its server, and its bounds.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The servers: `HOST:PORT`, `http://HOST:PORT` or `https://HOST`. They are tried in turn, from a random one.
    pub servers: Vec<String>,
    /// The key that every request carries.
    pub api_key: Option<String>,
    /// The file with that key. It is read again when the server does not accept the key.
    pub api_key_file: Option<PathBuf>,
    /// A PEM file with the certificates to trust instead of the usual ones.
    pub ca_file: Option<PathBuf>,
    /// How long a call may take, beside the time that it asks the server to wait.
    pub answer_timeout: Duration,
    /// How long a call of the typed API is repeated while nobody answers.
    pub patience: Duration,
    /// Bytes of an answer. A larger one is an error.
    pub answer_bytes_max: usize,
    /// Bytes of a payload. A larger one is rejected before it is sent. The server has its own limit.
    pub payload_bytes_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            servers: vec![DEFAULT_SERVER.into()],
            api_key: None,
            api_key_file: None,
            ca_file: None,
            answer_timeout: Duration::from_secs(60),
            patience: Duration::from_secs(30),
            answer_bytes_max: 64 << 20,
            payload_bytes_max: 256 << 10,
        }
    }
}

impl ClientOptions {
    /// As the environment says: `TICKWHEEL_SERVER` (one or more, with commas), `TICKWHEEL_API_KEY` or
    /// `TICKWHEEL_API_KEY_FILE`, `TICKWHEEL_CA_FILE`.
    pub fn from_env() -> Result<Self, Error> {
        let mut environment = Environment::default();
        let defaults = Self::default();
        let options = Self {
            servers: environment.list("SERVER").unwrap_or(defaults.servers),
            api_key: environment.text("API_KEY"),
            api_key_file: environment.text("API_KEY_FILE").map(Into::into),
            ca_file: environment.text("CA_FILE").map(Into::into),
            ..Self::default()
        };
        if options.api_key.is_some() && options.api_key_file.is_some() {
            environment.mistake("TICKWHEEL_API_KEY and TICKWHEEL_API_KEY_FILE: set one of them");
        }
        environment.check()?;
        Ok(options)
    }
}

impl Client {
    /// A client of the server that the environment names; see [`ClientOptions::from_env`]. Nothing is sent yet.
    pub fn from_env() -> Result<Self, Error> {
        let options = ClientOptions::from_env()?;
        Self::open(
            options,
            ["TICKWHEEL_SERVER: ", "TICKWHEEL_API_KEY: ", "TICKWHEEL_API_KEY_FILE: ", "TICKWHEEL_CA_FILE: "],
        )
    }

    /// A client of this server: an `http` or `https` address, or a host and a port, which are called by `http`.
    pub fn new(server: &str) -> Result<Self, Error> {
        Self::with_options(ClientOptions { servers: vec![server.into()], ..ClientOptions::default() })
    }

    /// A client with these options. Nothing is sent yet.
    pub fn with_options(options: ClientOptions) -> Result<Self, Error> {
        Self::open(options, [""; 4])
    }

    /// `names` of the settings stand before what is wrong with them.
    fn open(options: ClientOptions, names: [&str; 4]) -> Result<Self, Error> {
        let [server_name, key_name, key_file_name, ca_name] = names;
        let mut mistakes = Environment::default();
        let mut servers = Vec::new();
        for server in &options.servers {
            match address(server) {
                Ok(url) => servers.push(url),
                Err(mistake) => mistakes.mistake(format!("{server_name}{mistake}")),
            }
        }
        if options.servers.is_empty() {
            mistakes.mistake(format!("{server_name}there is no address of a server"));
        }
        let key = match (&options.api_key, &options.api_key_file) {
            (Some(key), _) => key_header(key).map(Some).map_err(|mistake| format!("{key_name}{mistake}")),
            (None, Some(path)) => {
                read_key(path).map(Some).map_err(|mistake| format!("{key_file_name}{mistake}"))
            }
            (None, None) => Ok(None),
        };
        let key = mistakes.keep(key.map_err(|mistake| Error::BadSettings(vec![mistake]))).flatten();
        let http = pool(options.ca_file.as_deref());
        let http = http.map_err(|mistake| Error::BadSettings(vec![format!("{ca_name}{mistake}")]));
        let http = mistakes.keep(http);
        mistakes.check()?;
        let first = rand::random_range(0..servers.len());
        let shared = Shared {
            options,
            servers,
            current: AtomicUsize::new(first),
            key: Mutex::new(key),
            http: http.expect("a mistake was reported otherwise"),
            recorder: None,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The same client with connections of its own. A connection belongs to the runtime that opened it, so a runtime
    /// that must never wait for another one needs this.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let old = &self.shared;
        let shared = Shared {
            options: old.options.clone(),
            servers: old.servers.clone(),
            current: AtomicUsize::new(old.current.load(Ordering::Relaxed)),
            key: Mutex::new(self.key()),
            // It was read before; if it cannot be read now, what was read then is as good.
            http: pool(old.options.ca_file.as_deref()).unwrap_or_else(|_| old.http.clone()),
            recorder: old.recorder.clone(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn recording(recorder: Recorder) -> Self {
        let client = Self::with_options(ClientOptions::default()).expect("the defaults are good");
        let shared = Arc::into_inner(client.shared).expect("nobody else has it yet");
        Self { shared: Arc::new(Shared { recorder: Some(recorder), ..shared }) }
    }

    /// Submits a job. Await it, or say more about it first.
    pub fn submit<J: JobType>(&self, job: J) -> Submit<J::Output> {
        Submit::new(self.clone(), NewJob::of(&job))
    }

    /// Submits a job whose type has no Rust type here.
    pub fn submit_job(&self, job: NewJob) -> Submit<serde_json::Value> {
        Submit::new(self.clone(), job)
    }

    /// Submits many jobs, in as few requests as possible. Each job has its own outcome, in order.
    pub async fn submit_many(
        &self,
        jobs: impl IntoIterator<Item = NewJob>,
    ) -> Vec<Result<JobHandle<serde_json::Value>, Error>> {
        submit_many(self, jobs.into_iter().collect()).await
    }

    /// A job that was submitted before, of type `J`.
    pub async fn job<J: JobType>(&self, id: Uuid) -> Result<JobHandle<J::Output>, Error> {
        let job = self.read_job(id).await?;
        Ok(JobHandle::new(self.clone(), job))
    }

    pub(crate) async fn read_job(&self, id: Uuid) -> Result<Job, Error> {
        let id = id.to_string();
        self.repeated(Repeat::Always, || self.get(&["jobs", &id])).await
    }

    /// Schedules: jobs that recur.
    pub fn schedules(&self) -> Schedules<'_> {
        Schedules(self)
    }

    /// Workflows: jobs that depend on each other.
    pub fn workflows(&self) -> Workflows<'_> {
        Workflows(self)
    }

    /// What the server is and what it can do.
    pub async fn server_info(&self) -> Result<ServerInfo, Error> {
        self.get(&["server"]).send().await?.read()
    }

    /// A request that reads.
    pub fn get(&self, path: &[&str]) -> Call<'_> {
        Call::new(self, Method::GET, path)
    }

    /// A request that does something.
    pub fn post(&self, path: &[&str]) -> Call<'_> {
        Call::new(self, Method::POST, path)
    }

    /// A request that puts something in the place of what was there.
    pub fn put(&self, path: &[&str]) -> Call<'_> {
        Call::new(self, Method::PUT, path)
    }

    /// A request that changes a part of something.
    pub fn patch(&self, path: &[&str]) -> Call<'_> {
        Call::new(self, Method::PATCH, path)
    }

    /// A request that removes something.
    pub fn delete(&self, path: &[&str]) -> Call<'_> {
        Call::new(self, Method::DELETE, path)
    }

    /// Sends a call until it is answered, and reads the answer.
    pub(crate) async fn repeated<'a, T: serde::de::DeserializeOwned>(
        &'a self,
        repeat: Repeat,
        call: impl Fn() -> Call<'a>,
    ) -> Result<T, Error> {
        let answer = repeated(self.options().patience, repeat, || call().send()).await?;
        answer.read()
    }

    /// Its options.
    pub fn options(&self) -> &ClientOptions {
        &self.shared.options
    }
}

/// Which server, and with which key.
impl Client {
    pub(crate) fn servers_len(&self) -> usize {
        self.shared.servers.len()
    }

    pub(crate) fn server(&self) -> (usize, &Url) {
        let index = self.shared.current.load(Ordering::Relaxed);
        (index, &self.shared.servers[index])
    }

    /// Goes on to the next server, unless another call did so already.
    pub(crate) fn leave_server(&self, failed: usize) {
        let next = (failed + 1) % self.shared.servers.len();
        let _ = self.shared.current.compare_exchange(failed, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn key(&self) -> Option<HeaderValue> {
        self.shared.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the key file again. Whether another key than `used` is known now.
    pub(crate) fn renew_key(&self, used: Option<&HeaderValue>) -> bool {
        if let Some(path) = &self.shared.options.api_key_file
            && self.shared.options.api_key.is_none()
            && let Ok(key) = read_key(path)
        {
            *self.shared.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        }
        self.key().as_ref() != used
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<_> =
            self.shared.servers.iter().map(|url| url.origin().ascii_serialization()).collect();
        f.debug_struct("Client").field("servers", &servers).finish_non_exhaustive()
    }
}

fn address(server: &str) -> Result<Url, String> {
    let wrong = || {
        let forms = "use HOST:PORT, http://HOST:PORT or https://HOST";
        format!("{server:?} is not the address of a server: {forms}")
    };
    // `localhost:7180` alone would be read as a scheme and a path.
    let with_scheme = if server.contains("://") { server.into() } else { format!("http://{server}") };
    let url = Url::parse(&with_scheme).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    Ok(url)
}

fn key_header(key: &str) -> Result<HeaderValue, String> {
    let mut header = HeaderValue::from_str(&format!("Bearer {key}"))
        .map_err(|_| "the API key contains characters no key has".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

fn read_key(path: &Path) -> Result<HeaderValue, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{} is empty", path.display())),
        key => key_header(key),
    }
}
