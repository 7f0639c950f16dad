//! Waiting for what comes about by itself.

use std::time::Duration;

use crate::failure::Failure;

/// How often is looked.
const PAUSE: Duration = Duration::from_millis(50);
/// How long at most, in seconds. Far more than it takes, for machines that do much else.
const SECONDS: u64 = 90;

/// Asks again and again until there is an answer.
///
/// # Errors
/// What asking fails with; [`Failure::Late`] when there is no answer in time. `what` completes the
/// sentence "It did not come about that …".
pub async fn until<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let asking = async {
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let late = || Failure::Late { what: what.to_owned(), seconds: SECONDS };
    tokio::time::timeout(Duration::from_secs(SECONDS), asking).await.map_err(|_| late())?
}
