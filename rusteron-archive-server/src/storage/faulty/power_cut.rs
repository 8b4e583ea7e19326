//! The directories that a power cut can leave of a storage.

use std::collections::BTreeMap;

use rusteron_test_support::Random;

use super::{Change, Content, Disk, FaultyStorage, FileId, PAGE, Page, pages_of, rename};
use crate::storage::SyncLevel;

/// The states of names, and of each file's length and pages, that can be on the disk when power fails.
///
/// All of them reach the disk independently, except for names: a file system keeps their changes in order, in its journal.
pub(crate) struct PowerCut {
    /// From what was synced to the last.
    names: Vec<BTreeMap<String, FileId>>,
    files: Vec<Remains>,
}

/// The same for a file.
struct Remains {
    durable: Content,
    /// Of those pages that have been changed since. `None` is a hole.
    pages: BTreeMap<u64, Vec<Option<Page>>>,
    lengths: Vec<u64>,
}

/// A file, and its changes since the last sync.
#[derive(Default)]
struct CachedFile<'a> {
    durable: Content,
    unsynced: Vec<&'a Change>,
}

impl PowerCut {
    pub(super) fn new(initial: &Disk, log: &[Change]) -> Self {
        let mut names = vec![initial.names.clone()];
        let durable = initial.files.iter().cloned();
        let mut files: Vec<_> =
            durable.map(|durable| CachedFile { durable, unsynced: Vec::new() }).collect();
        for change in log {
            match change {
                Change::Create { file, .. } => {
                    files.push(CachedFile::default());
                    files[*file].unsynced.push(change);
                }
                Change::Write { file, .. } | Change::SetLength { file, .. } => {
                    files[*file].unsynced.push(change);
                }
                // Both levels write everything that reading needs, lengths included.
                Change::Sync { file, level } if *level != SyncLevel::None => files[*file].sync(),
                Change::SyncDir => {
                    names.drain(..names.len() - 1);
                }
                Change::Sync { .. } | Change::Rename { .. } | Change::Remove { .. } => {}
            }
            if let Change::Create { .. } | Change::Rename { .. } | Change::Remove { .. } = change {
                let mut next = names.last().cloned().unwrap_or_default();
                rename(&mut next, change);
                names.push(next);
            }
        }
        Self { names, files: files.into_iter().map(CachedFile::remains).collect() }
    }

    /// Returns what is there if `survivors` says how much survives.
    ///
    /// It gets the number of unsynced changes of a thing, and returns how many of them reached the disk, oldest first. It is
    /// asked once for all names, and for each file for each page that was changed, and for its length.
    pub(crate) fn survive(&self, survivors: &mut dyn FnMut(usize) -> usize) -> FaultyStorage {
        let names = self.names[survivors(self.names.len() - 1)].clone();
        let files = self.files.iter().map(|file| file.survive(survivors)).collect();
        FaultyStorage::from_disk(Disk { names, files })
    }

    /// Returns all that can be there if these are at most `exhaustive` combinations, and otherwise `sampled` of them.
    pub(crate) fn outcomes<'a>(
        &'a self,
        exhaustive: usize,
        sampled: usize,
        random: &'a mut Random,
    ) -> impl Iterator<Item = FaultyStorage> + 'a {
        let mut unsynced = Vec::new();
        self.survive(&mut |count| {
            unsynced.push(count);
            0
        });
        let all = unsynced.iter().try_fold(1_usize, |all, &count| all.checked_mul(count + 1));
        let all = all.filter(|&all| all <= exhaustive);
        (0..all.unwrap_or(sampled)).map(move |number| {
            // A mixed number has a digit for each thing.
            let mut rest = number;
            // Also few losses, and few survivors: these leave whole frames around one that is torn.
            let bias = random.below(4);
            self.survive(&mut |count| {
                if all.is_some() {
                    let digit = rest % (count + 1);
                    rest /= count + 1;
                    return digit;
                }
                match bias {
                    0 if random.percent(90) => count,
                    1 if random.percent(90) => 0,
                    _ => random.below(count + 1),
                }
            })
        })
    }
}

impl CachedFile<'_> {
    fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            self.durable.apply(change);
        }
    }

    fn remains(self) -> Remains {
        let mut lengths = vec![self.durable.length];
        let mut pages: BTreeMap<u64, Vec<Option<Page>>> = BTreeMap::new();
        let mut cached = self.durable.clone();
        for change in self.unsynced {
            let touched: Vec<u64> = match change {
                Change::Write { offset, bytes, .. } => {
                    pages_of(*offset, bytes.len()).map(|(number, _)| number).collect()
                }
                Change::Create { length, .. } | Change::SetLength { length, .. } => {
                    cached.pages.range(length / PAGE..).map(|(&number, _)| number).collect()
                }
                _ => Vec::new(),
            };
            cached.apply(change);
            if lengths.last() != Some(&cached.length) {
                lengths.push(cached.length);
            }
            for number in touched {
                let durable = || vec![self.durable.pages.get(&number).cloned()];
                let states = pages.entry(number).or_insert_with(durable);
                states.push(cached.pages.get(&number).cloned());
            }
        }
        Remains { durable: self.durable, pages, lengths }
    }
}

impl Remains {
    fn survive(&self, survivors: &mut dyn FnMut(usize) -> usize) -> Content {
        let mut content = self.durable.clone();
        for (&number, states) in &self.pages {
            match &states[survivors(states.len() - 1)] {
                Some(page) => content.pages.insert(number, Page::clone(page)),
                None => content.pages.remove(&number),
            };
        }
        content.set_length(self.lengths[survivors(self.lengths.len() - 1)]);
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{PAGE_LENGTH, Storage};

    fn all(unsynced: usize) -> usize {
        unsynced
    }

    fn none(_: usize) -> usize {
        0
    }

    #[test]
    fn power_cut_keeps_what_was_synced() {
        let storage = FaultyStorage::default();
        let mut file = storage.create("a", 2 * PAGE).unwrap();
        file.write_all_at(b"synced", 0).unwrap();
        file.sync(SyncLevel::Data).unwrap();
        file.write_all_at(b"later_", 0).unwrap();
        file.sync(SyncLevel::None).unwrap();
        storage.sync_dir().unwrap();
        storage.rename("a", "b").unwrap();

        let lost = storage.after_power_cut(7, &mut none);
        assert_eq!(lost.names().unwrap(), ["a"]);
        assert_eq!(lost.content("a").unwrap()[..6], *b"synced");
        let kept = storage.after_power_cut(7, &mut all);
        assert_eq!(kept.names().unwrap(), ["b"]);
        assert_eq!(kept.content("b").unwrap()[..6], *b"later_");
        // A file whose name is not durable is gone, whether its content is synced or not.
        assert!(storage.after_power_cut(5, &mut none).names().unwrap().is_empty());
        assert_eq!(storage.after_power_cut(5, &mut all).names().unwrap(), ["a"]);
    }

    #[test]
    fn power_cut_loses_a_cut_in_part() {
        let storage = FaultyStorage::default();
        let mut file = storage.create("a", 0).unwrap();
        file.write_all_at(&[1; 2 * PAGE_LENGTH], 0).unwrap();
        file.sync(SyncLevel::Data).unwrap();
        storage.sync_dir().unwrap();
        file.set_length(10).unwrap();
        let length = |survivors: &mut dyn FnMut(usize) -> usize| {
            storage.after_power_cut(5, survivors).content("a").unwrap().len()
        };
        assert_eq!(length(&mut none), 2 * PAGE_LENGTH);
        assert_eq!(length(&mut all), 10);
    }
}
