//! `pagebridge guard`, which only pagebridge itself starts: it cleans up when a pagebridge is killed.

use std::path::Path;

use super::DONE;

/// Waits for the end of the pagebridge that started it.
pub async fn run(ledger: &Path) -> u8 {
    pagebridge_process::guard(ledger).await;
    DONE
}
