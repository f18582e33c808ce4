//! `pagebridge demo`
use crate::App;
use crate::cli::ServeArgs;
/// x
pub async fn run(_: &ServeArgs, _: &App) -> u8 {
    0
}
