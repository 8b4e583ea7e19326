use super::*;

fn read(storage: &FaultyStorage, name: &str) -> Vec<u8> {
    storage.content(name).unwrap()
}

fn all(unsynced: usize) -> usize {
    unsynced
}

fn none(_: usize) -> usize {
    0
}

#[test]
fn files_read_what_was_written() {
    let storage = FaultyStorage::default();
    let mut file = storage.create("a", 3 * PAGE).unwrap();
    file.write_all_at(&[7; PAGE_LENGTH], 100).unwrap();
    let mut bytes = vec![1; PAGE_LENGTH + 2];
    assert_eq!(file.read_at(&mut bytes, 99).unwrap(), bytes.len());
    assert_eq!(bytes[0], 0);
    assert!(bytes[1..=PAGE_LENGTH].iter().all(|&byte| byte == 7));
    assert_eq!(bytes[PAGE_LENGTH + 1], 0);
    assert_eq!(file.first_hole(0).unwrap(), 2 * PAGE);
    assert_eq!(file.read_at(&mut bytes, 3 * PAGE - 1).unwrap(), 1);
    assert_eq!(file.read_at(&mut bytes, 4 * PAGE).unwrap(), 0);
    file.set_length(150).unwrap();
    file.set_length(2 * PAGE).unwrap();
    assert_eq!(file.first_hole(0).unwrap(), PAGE);
    assert_eq!(read(&storage, "a").iter().filter(|&&byte| byte == 7).count(), 50);
}

#[test]
fn fault_hits_one_change() {
    let storage = FaultyStorage::default();
    storage.fail_after(1, io::ErrorKind::PermissionDenied);
    let mut file = storage.create("a", 0).unwrap();
    let error = file.write_all_at(b"a", 0).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(read(&storage, "a"), b"");
    file.write_all_at(b"b", 0).unwrap();
    assert_eq!(read(&storage, "a"), b"b");
    assert_eq!(storage.log().len(), 2);
}

#[test]
fn stopped_storage_fails_for_good() {
    let storage = FaultyStorage::default();
    storage.stop_after(1);
    let mut file = storage.create("a", 0).unwrap();
    file.write_all_at(b"a", 0).unwrap_err();
    file.read_at(&mut [0], 0).unwrap_err();
    storage.names().unwrap_err();
    storage.sync_dir().unwrap_err();
    assert_eq!(storage.log().len(), 1);
}

#[test]
fn full_storage_takes_whole_pages() {
    let storage = FaultyStorage::default();
    storage.limit_space(Some(2 * PAGE));
    let mut file = storage.create("a", 10 * PAGE).unwrap();
    assert_eq!(storage.usable_space().unwrap(), 2 * PAGE);
    let error = file.write_all_at(&[1; 2 * PAGE_LENGTH], 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(storage.usable_space().unwrap(), 0);
    let written = read(&storage, "a").iter().filter(|&&byte| byte == 1).count();
    assert_eq!(written, 2 * PAGE_LENGTH - 1);
    // Pages that are there already can be written.
    file.write_all_at(&[2; 5], 0).unwrap();
    storage.remove("a").unwrap();
    assert_eq!(storage.usable_space().unwrap(), 2 * PAGE);
}

#[test]
fn kill_keeps_changes_and_pages_of_the_next() {
    let storage = FaultyStorage::default();
    let mut file = storage.create("a", 0).unwrap();
    file.write_all_at(b"a", 0).unwrap();
    file.write_all_at(&[7; 2 * PAGE_LENGTH], PAGE - 1).unwrap();
    let lengths = |changes| -> Vec<usize> {
        (0..4).map(|pages| read(&storage.after_kill(changes, pages), "a").len()).collect()
    };
    assert_eq!(lengths(1), [0, 1, 1, 1]);
    let length = PAGE_LENGTH;
    assert_eq!(lengths(2), [1, length, 2 * length, 3 * length - 1]);
    assert_eq!(lengths(3), [3 * length - 1; 4]);
    assert!(storage.after_kill(0, 0).names().unwrap().is_empty());
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
    assert_eq!(read(&lost, "a")[..6], *b"synced");
    let kept = storage.after_power_cut(7, &mut all);
    assert_eq!(kept.names().unwrap(), ["b"]);
    assert_eq!(read(&kept, "b")[..6], *b"later_");
    // A file without a durable name is gone, synced or not.
    assert!(storage.after_power_cut(5, &mut none).names().unwrap().is_empty());
    assert_eq!(storage.after_power_cut(5, &mut all).names().unwrap(), ["a"]);
}

#[test]
fn power_cut_loses_pages_one_by_one() {
    let storage = FaultyStorage::default();
    let mut file = storage.create("a", 3 * PAGE).unwrap();
    file.sync(SyncLevel::All).unwrap();
    storage.sync_dir().unwrap();
    file.write_all_at(&[1; 3 * PAGE_LENGTH], 0).unwrap();
    file.write_all_at(&[2; PAGE_LENGTH], PAGE).unwrap();
    // No name is unsynced; the first page keeps one write of one, the second one of two, the third none of one.
    let mut asked = Vec::new();
    let mut answers = [0, 1, 1, 0, 0].into_iter();
    let cut = storage.after_power_cut(5, &mut |unsynced| {
        asked.push(unsynced);
        answers.next().unwrap()
    });
    assert_eq!(asked, [0, 1, 2, 1, 0]);
    let bytes = read(&cut, "a");
    assert!(bytes[..2 * PAGE_LENGTH].iter().all(|&byte| byte == 1));
    assert!(bytes[2 * PAGE_LENGTH..].iter().all(|&byte| byte == 0));
    assert_eq!(cut.open("a").unwrap().first_hole(0).unwrap(), 2 * PAGE);
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
        read(&storage.after_power_cut(5, survivors), "a").len()
    };
    assert_eq!(length(&mut none), 2 * PAGE_LENGTH);
    assert_eq!(length(&mut all), 10);
}
