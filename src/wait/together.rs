//! Questions that come at the same time go together. In each place one request is under way; whoever comes meanwhile shares the next one.
//! So however many wait, a place is asked one thing at a time.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// What a request found, by id; or why it found nothing. Many share it.
pub(super) type Found<T> = Arc<Result<HashMap<String, T>, String>>;

/// Those who ask, by place.
pub(super) struct Together<T>(Arc<Mutex<HashMap<String, Place<T>>>>);

struct Place<T> {
    asking: VecDeque<Asking<T>>,
    under_way: bool,
}

struct Asking<T> {
    ids: Vec<String>,
    answer: oneshot::Sender<Found<T>>,
}

impl<T> Default for Together<T> {
    fn default() -> Together<T> {
        Together(Arc::default())
    }
}

impl<T: Send + Sync + 'static> Together<T> {
    /// Asks for these ids in a place; `ask` sends a request for at most `most` ids, of several callers if need be (one caller alone may
    /// have more). It runs in a task of its own, so that nobody who gives up takes the answer from the others.
    pub async fn ask<F, R>(&self, place: &str, ids: Vec<String>, most: usize, ask: F) -> Found<T>
    where
        F: Fn(Vec<String>) -> R + Send + 'static,
        R: Future<Output = Result<HashMap<String, T>, String>> + Send,
    {
        let (answer, answered) = oneshot::channel();
        let is_first = self.with(place, |here| {
            here.asking.push_back(Asking { ids, answer });
            !std::mem::replace(&mut here.under_way, true)
        });
        if is_first {
            let mut request = UnderWay { together: Together(self.0.clone()), place: place.to_owned(), is_over: false };
            tokio::spawn(async move {
                while let Some(asking) = request.next(most) {
                    let found = Arc::new(ask(asking.iter().flat_map(|asking| asking.ids.clone()).collect()).await);
                    asking.into_iter().for_each(|asking| _ = asking.answer.send(found.clone()));
                }
            });
        }
        answered.await.unwrap_or_else(|_| Arc::new(Err("the question was cut short".into())))
    }

    fn with<R>(&self, place: &str, work: impl FnOnce(&mut Place<T>) -> R) -> R {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(places.entry(place.to_owned()).or_insert_with(|| Place { asking: VecDeque::new(), under_way: false }))
    }
}

/// The requests of a place, one after the other, until nobody asks any more.
struct UnderWay<T: Send + Sync + 'static> {
    together: Together<T>,
    place: String,
    is_over: bool,
}

impl<T: Send + Sync + 'static> UnderWay<T> {
    /// Those whom the next request is for, without those who have gone. None: nobody asks any more, and it is over.
    fn next(&mut self, most: usize) -> Option<Vec<Asking<T>>> {
        let taken = self.together.with(&self.place, |here| {
            let (mut taken, mut ids) = (Vec::new(), 0);
            while let Some(asking) = here.asking.pop_front() {
                if asking.answer.is_closed() {
                    continue;
                }
                if ids > 0 && ids + asking.ids.len() > most {
                    here.asking.push_front(asking);
                    break;
                }
                ids += asking.ids.len();
                taken.push(asking);
            }
            here.under_way = !taken.is_empty();
            taken
        });
        self.is_over = taken.is_empty();
        (!self.is_over).then_some(taken)
    }
}

impl<T: Send + Sync + 'static> Drop for UnderWay<T> {
    fn drop(&mut self) {
        if !self.is_over {
            // it panicked: whoever waits is told, and the next one begins again
            self.together.with(&self.place, |here| {
                here.under_way = false;
                here.asking.clear();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn many_who_ask_at_once_share_requests_and_each_gets_its_own() {
        let (together, requests): (Together<usize>, _) = (Together::default(), Arc::new(AtomicUsize::new(0)));
        let ask = |n: usize| {
            let requests = requests.clone();
            together.ask("here", vec![n.to_string()], 40, move |ids| {
                requests.fetch_add(1, Ordering::SeqCst);
                async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    assert!(ids.len() <= 40);
                    Ok(ids.into_iter().map(|id| (id.clone(), id.parse().unwrap())).collect())
                }
            })
        };
        for _ in 0..2 {
            let answers = join_all((0..100).map(ask)).await;
            for (n, answer) in answers.iter().enumerate() {
                assert_eq!(answer.as_ref().as_ref().unwrap()[&n.to_string()], n);
            }
        }
        assert_eq!(requests.load(Ordering::SeqCst), 2 * 3, "40, 40 and 20");
    }

    #[tokio::test]
    async fn a_question_that_panics_is_answered_and_the_next_one_is_asked() {
        let together: Together<usize> = Together::default();
        let ask = |fails: bool| {
            together.ask("here", vec!["a".into()], 1, move |_| async move {
                assert!(!fails, "on purpose");
                Ok(HashMap::new())
            })
        };
        assert!(ask(true).await.is_err());
        assert!(ask(false).await.is_ok());
    }
}
