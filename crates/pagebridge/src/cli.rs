//! The command line. Every option has an environment variable: `PAGEBRIDGE_` and its name in capitals.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::TypedValueParser;
use clap::parser::ValueSource;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use pagebridge_browser::{BrowserOptions, Endpoint, refuse_argument};
use pagebridge_core::duration;
use pagebridge_server::{Consequential, SessionOptions};

/// Real browsers, and the tools that web pages offer of their own, for AI agents over MCP.
#[derive(Debug, Parser)]
#[command(name = "pagebridge", version, arg_required_else_help = false)]
pub struct Cli {
    /// What to do; `serve` if absent.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How much is logged to stderr: error, warn, info, debug or trace.
    #[arg(long, global = true, env = "PAGEBRIDGE_LOG_LEVEL", default_value = "info", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub log_level: String,

    /// Options of `serve`, which may be left away.
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// Reads the command line. Options of `serve` may stand alone, but before another command they would be lost.
    pub fn read() -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(std::env::args_os())?;
        let is_lost = |id: &&clap::Id| {
            id.as_str() != "log_level" && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
        };
        let lost = matches.ids().filter(is_lost).find_map(|id| {
            let argument = command.get_arguments().find(|argument| argument.get_id() == id)?;
            argument.get_long().map(str::to_owned)
        });
        match (matches.subcommand_name(), lost) {
            (Some(name), Some(option)) => {
                let message = format!(
                    "--{option} stands before the command: write it after, as in `pagebridge {name} --{option}`\n"
                );
                Err(command.error(clap::error::ErrorKind::ArgumentConflict, message))
            }
            _ => Self::from_arg_matches(&matches),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve MCP on standard input and output (the default).
    Serve(Box<ServeArgs>),
    /// Show the main job: a local shop, a scripted client, a real browser.
    Demo(Box<DemoArgs>),
    /// List the tools that a page offers.
    Tools(Box<ToolsArgs>),
    /// Call a tool of a page; prints the result. Exit status 1 when the tool fails.
    Call(Box<CallArgs>),
    /// Check Chromium, sandbox, folders and WebMCP; launches a browser once.
    Doctor(Box<DoctorArgs>),
    /// Print the configuration that an MCP client needs.
    ClientConfig(ClientConfigArgs),
    /// Cleans up when the pagebridge that started it is killed.
    #[command(hide = true)]
    Guard {
        /// The list of what that pagebridge has started.
        ledger: PathBuf,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The browser's options, accepted by every command that opens one.
#[derive(Debug, Clone, Default, Args)]
pub struct BrowserArgs {
    /// Use a browser that somebody else runs and never end it: its debugging port, host:port, http://host:port or ws:// address.
    #[arg(
        long,
        env = CONNECT,
        hide_env_values = true,
        value_name = "URL|PORT",
        value_parser = EndpointParser,
        conflicts_with_all = ["executable_path", "headed", "browser_arg", "user_data_dir"]
    )]
    pub connect: Option<Endpoint>,
    /// The browser's executable; otherwise PATH and Playwright's cache are searched.
    #[arg(long, env = "PAGEBRIDGE_EXECUTABLE_PATH", value_name = "FILE")]
    pub executable_path: Option<PathBuf>,
    /// Show a browser window.
    #[arg(long, env = "PAGEBRIDGE_HEADED", conflicts_with = "headless", value_parser = clap::builder::FalseyValueParser::new())]
    pub headed: bool,
    /// Show no window (the default).
    #[arg(long, env = "PAGEBRIDGE_HEADLESS", value_parser = clap::builder::FalseyValueParser::new())]
    pub headless: bool,
    /// Run Chromium without its sandbox: needed as root, and a risk with pages that you do not trust.
    #[arg(long, env = "PAGEBRIDGE_NO_SANDBOX", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_sandbox: bool,
    /// A further argument for the browser; may be repeated.
    #[arg(long, env = "PAGEBRIDGE_BROWSER_ARG", value_name = "ARG", allow_hyphen_values = true, value_parser = browser_arg)]
    pub browser_arg: Vec<String>,
    /// A profile folder to keep; otherwise a fresh profile is used and removed.
    #[arg(long, env = "PAGEBRIDGE_USER_DATA_DIR", value_name = "DIR", conflicts_with = "isolated")]
    pub user_data_dir: Option<PathBuf>,
    /// Use a fresh profile (the default).
    #[arg(long, env = "PAGEBRIDGE_ISOLATED", value_parser = clap::builder::FalseyValueParser::new())]
    pub isolated: bool,
    /// An origin whose frames may offer tools in pages of other origins; may be repeated.
    #[arg(long, env = "PAGEBRIDGE_ALLOW_FRAMES", value_name = "ORIGIN", value_delimiter = ',', value_parser = origin)]
    pub allow_frames: Vec<String>,
    /// Allow file: addresses.
    #[arg(long, env = "PAGEBRIDGE_ALLOW_FILE_URLS", value_parser = clap::builder::FalseyValueParser::new())]
    pub allow_file_urls: bool,
}

/// The variable of `--connect`.
pub const CONNECT: &str = "PAGEBRIDGE_CONNECT";

/// Reads an endpoint. Clap's own errors repeat the value, and with it credentials and tokens.
#[derive(Debug, Clone)]
struct EndpointParser;

impl TypedValueParser for EndpointParser {
    type Value = Endpoint;

    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Endpoint, clap::Error> {
        let parsed = value.to_str().ok_or_else(|| "the address is no text".to_owned());
        parsed.and_then(Endpoint::parse).map_err(|reason| {
            let message = format!("--connect: {reason}\n");
            clap::Error::raw(clap::error::ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }
}

fn browser_arg(argument: &str) -> Result<String, String> {
    match refuse_argument(argument) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(argument.to_owned()),
    }
}

/// An origin in the form in which browsers write it.
fn origin(given: &str) -> Result<String, String> {
    match pagebridge_core::address::origin(given).as_str() {
        "null" => Err("write an origin, like https://example.com or http://localhost:8080".into()),
        origin => Ok(origin.to_owned()),
    }
}

impl BrowserArgs {
    /// The options for a launch.
    pub fn options(&self) -> BrowserOptions {
        BrowserOptions {
            connect: self.connect.clone(),
            executable: self.executable_path.clone(),
            headed: self.headed && !self.headless,
            no_sandbox: self.no_sandbox,
            extra_args: self.browser_arg.clone(),
            user_data_dir: self.user_data_dir.clone(),
            allowed_frames: self.allow_frames.clone(),
        }
    }

    /// The same choices as a command line, but for `--connect`: others can read command lines, so its secrets go
    /// into the environment ([`BrowserArgs::as_environment`]).
    pub fn as_arguments(&self) -> Vec<OsString> {
        let flag = |given: bool, name: &str| given.then(|| OsString::from(name));
        let path = |name: &str, path: &Option<PathBuf>| {
            path.iter().flat_map(|path| [OsString::from(name), path.into()]).collect::<Vec<_>>()
        };
        let flags = [
            flag(self.headed && !self.headless, "--headed"),
            flag(self.no_sandbox, "--no-sandbox"),
            flag(self.allow_file_urls, "--allow-file-urls"),
        ];
        let mut arguments: Vec<OsString> = flags.into_iter().flatten().collect();
        arguments.extend(path("--executable-path", &self.executable_path));
        arguments.extend(path("--user-data-dir", &self.user_data_dir));
        arguments.extend(self.allow_frames.iter().flat_map(|o| ["--allow-frames".into(), o.into()]));
        arguments.extend(self.browser_arg.iter().flat_map(|arg| ["--browser-arg".into(), arg.into()]));
        arguments
    }

    /// What belongs to [`BrowserArgs::as_arguments`] and must not be seen.
    pub fn as_environment(&self) -> Option<(&'static str, &str)> {
        self.connect.as_ref().map(|endpoint| (CONNECT, endpoint.secret()))
    }
}

/// The options of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Only serve the demo's shop and print its address; ends with standard input.
    #[arg(long)]
    pub site: bool,
    #[command(flatten)]
    pub browser: BrowserArgs,
}

/// The options of `serve`.
#[derive(Debug, Clone, Default, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub browser: BrowserArgs,
    /// Folder for results that are too large to be shown; the current folder if absent.
    #[arg(long, env = "PAGEBRIDGE_WORKSPACE", value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// Whether each tool of the selected page becomes an MCP tool of its own.
    #[arg(long, env = "PAGEBRIDGE_DYNAMIC_TOOLS", value_enum, default_value_t)]
    pub dynamic_tools: Switch,
    /// Also offer page tools that are marked as developer tools.
    #[arg(long, env = "PAGEBRIDGE_PAGE_TOOLS_DEBUGGING", value_parser = clap::builder::FalseyValueParser::new())]
    pub page_tools_debugging: bool,
    /// What happens to page tools that say they have consequences: ask (refused where nobody can be asked), allow, deny.
    #[arg(long, env = "PAGEBRIDGE_CONSEQUENTIAL", value_enum, default_value_t)]
    pub consequential: Consent,
    /// Most time for a page tool or a script.
    #[arg(long, env = "PAGEBRIDGE_PAGE_CALL_TIMEOUT", value_name = "TIME", value_parser = duration::parse, default_value = "50s")]
    pub page_call_timeout: Duration,
    /// Most time for a page to load.
    #[arg(long, env = "PAGEBRIDGE_NAVIGATION_TIMEOUT", value_name = "TIME", value_parser = duration::parse, default_value = "30s")]
    pub navigation_timeout: Duration,
    /// Bytes of a text that are shown; the rest goes to a file in the workspace.
    #[arg(long, env = "PAGEBRIDGE_MAX_TEXT_BYTES", value_name = "N", default_value_t = pagebridge_core::limits::TEXT_BYTES)]
    pub max_text_bytes: usize,
    /// Lines of a text that are shown; the rest goes to a file in the workspace.
    #[arg(long, env = "PAGEBRIDGE_MAX_TEXT_LINES", value_name = "N", default_value_t = pagebridge_core::limits::TEXT_LINES)]
    pub max_text_lines: usize,
    /// Bytes of an image in a result; a larger one is scaled down and the whole goes to a file in the workspace.
    #[arg(long, env = "PAGEBRIDGE_MAX_IMAGE_BYTES", value_name = "N", default_value_t = pagebridge_core::limits::IMAGE_BYTES)]
    pub max_image_bytes: usize,
}

impl ServeArgs {
    /// The options of a session in this workspace.
    pub fn options(&self, workspace: PathBuf) -> SessionOptions {
        SessionOptions {
            browser: self.browser.options(),
            workspace,
            dynamic_tools: self.dynamic_tools == Switch::On,
            page_tools_debugging: self.page_tools_debugging,
            consequential: self.consequential.into(),
            allow_file_urls: self.browser.allow_file_urls,
            page_call_timeout: self.page_call_timeout,
            navigation_timeout: self.navigation_timeout,
            max_text_lines: self.max_text_lines,
            max_text_bytes: self.max_text_bytes,
            max_image_bytes: self.max_image_bytes,
        }
    }
}

/// `on` or `off`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    #[default]
    On,
    Off,
}

/// What happens to consequential page tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Consent {
    #[default]
    Ask,
    Allow,
    Deny,
}

impl From<Consent> for Consequential {
    fn from(consent: Consent) -> Self {
        match consent {
            Consent::Ask => Self::Ask,
            Consent::Allow => Self::Allow,
            Consent::Deny => Self::Deny,
        }
    }
}

/// The options of `tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    /// Address of the page.
    pub url: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Milliseconds to wait for a page that offers its tools late.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub wait: u64,
    /// Also the page's developer tools.
    #[arg(long)]
    pub debugging: bool,
    #[command(flatten)]
    pub browser: BrowserArgs,
}

/// The options of `call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// Address of the page.
    pub url: String,
    /// Name of the tool, as the page gives it.
    pub tool: String,
    /// Arguments as key=value. A value that is JSON counts as JSON, anything else as text.
    #[arg(value_name = "KEY=VALUE", conflicts_with = "args")]
    pub pairs: Vec<String>,
    /// All arguments as a JSON object, or @FILE with one.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Milliseconds to wait for a page that offers its tools late.
    #[arg(long, value_name = "MS", default_value_t = 2_000)]
    pub wait: u64,
    /// Most time for the call.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "50s")]
    pub timeout: Duration,
    /// Run a tool that has consequences without asking.
    #[arg(long)]
    pub yes: bool,
    /// Print the whole structured result as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub browser: BrowserArgs,
}

/// The options of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub browser: BrowserArgs,
}

/// The options of `client-config`.
#[derive(Debug, Args)]
pub struct ClientConfigArgs {
    /// The client.
    #[arg(value_enum)]
    pub client: Client,
    /// Print the snippet (the default).
    #[arg(long)]
    pub print: bool,
    /// Add --no-sandbox to the command, for clients that run as root.
    #[arg(long)]
    pub no_sandbox: bool,
}

/// MCP clients whose configuration we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Client {
    ClaudeCode,
    Codex,
    Cursor,
    Vscode,
    ClaudeDesktop,
}
