//! A catalogue is made where it is missing, by one of those who begin at once, and anew where it cannot be read.

use super::*;

#[test]
fn a_damaged_or_foreign_file_is_made_anew() {
    let check = |damage: &dyn Fn(&Place)| {
        let place = Place::new();
        let catalogue = place.open();
        catalogue.put(row("a", 1, 10));
        catalogue.flush().unwrap();
        drop(catalogue);
        damage(&place);
        let fresh = Incarnation::new([3; 16]);
        let (catalogue, found) = Catalogue::open(&place.file(), fresh).unwrap();
        assert_eq!((found, catalogue.epoch()), (Found::Empty, fresh));
        catalogue.put(row("b", 1, 10));
        assert_eq!(names(&catalogue, &all(9)), ["b"]);
    };
    check(&|place| {
        let disk: Arc<dyn Disk> = place.file().disk;
        for name in ["catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
            let _absent_is_fine = disk.remove_file(&RelPath::parse(name).unwrap());
        }
        let file = disk.open(&place.file().name, bough_platform::Access::ReadWrite).unwrap();
        file.write_at(0, &[0x5a; 4096]).unwrap();
    });
    check(&|place| {
        let connection = Connection::open(place.file().path).unwrap();
        connection.pragma_update(None, "user_version", 99).unwrap();
    });
}

#[test]
fn where_the_file_cannot_be_written_one_in_memory_takes_its_place() {
    let place = Place::new();
    let path = place.dir.path().join("no-such-folder").join("catalogue.sqlite");
    let file = CatalogueFile { path, ..place.file() };
    let processes = RelPath::parse("processes").unwrap();
    file.disk.create_dir(&processes).unwrap();
    let marks = || file.disk.list(&processes).unwrap().len();
    let (catalogue, found) = Catalogue::open(&file, Incarnation::new([3; 16])).unwrap();
    assert_eq!(found, Found::Empty);
    catalogue.put(row("a", 1, 10));
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
    catalogue.forget_changes().unwrap();
    assert_eq!(marks(), 0, "what was read from the logs is no news for others");
    catalogue.put(row("b", 1, 20));
    assert_eq!(names(&catalogue, &all(9)).len(), 2);
    assert_eq!(marks(), 1, "others are made to look at the logs");
}

/// On a disk that is mounted read-only SQLite opens the file all the same, for reading.
#[test]
fn a_file_that_can_only_be_read_is_not_used() {
    let place = Place::new();
    let catalogue = place.open();
    catalogue.put(row("old", 1, 10));
    catalogue.settle().unwrap();
    drop(catalogue);
    let path = format!("file:{}?mode=ro", place.file().path.display());
    let file = CatalogueFile { path: path.into(), ..place.file() };
    let (catalogue, found) = Catalogue::open(&file, Incarnation::new([3; 16])).unwrap();
    assert_eq!(found, Found::Empty, "every session is to be put in again");
    catalogue.put(row("a", 1, 10));
    assert_eq!(names(&catalogue, &all(9)), ["a"]);
    catalogue.settle().unwrap();
}

/// Processes that begin at once on a new directory.
#[test]
fn many_make_the_same_catalogue_at_once() {
    const AT_ONCE: usize = 8;
    for _ in 0..10 {
        let place = Place::new();
        let together = std::sync::Barrier::new(AT_ONCE);
        let open = || {
            together.wait();
            Catalogue::open(&place.file(), Incarnation::new([1; 16])).map(|(_, found)| found)
        };
        let found: Vec<Found> = std::thread::scope(|scope| {
            let opening: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(open)).collect();
            opening.into_iter().map(|one| one.join().unwrap().unwrap()).collect()
        });
        assert_eq!(found.iter().filter(|found| **found == Found::Empty).count(), 1, "{found:?}");
    }
}
