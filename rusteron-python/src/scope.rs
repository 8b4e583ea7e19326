//! The handles of a client, and what they keep alive.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rusteron_media_driver as driver;

use crate::slot::{Close, Slot};

pub(crate) type DriverSlot = Slot<driver::MediaDriver>;

/// A handle with the driver that it needs, which is dropped after it.
pub(crate) struct Owned<T> {
    handle: T,
    _driver: Option<Arc<DriverSlot>>,
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.handle
    }
}

impl<T> DerefMut for Owned<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.handle
    }
}

impl<T> Owned<T> {
    /// Returns the handle and its driver. `from_parts` takes the driver for another handle of the same client.
    pub(crate) fn into_parts(self) -> (T, Option<Arc<DriverSlot>>) {
        (self.handle, self._driver)
    }

    pub(crate) fn from_parts(handle: T, driver: Option<Arc<DriverSlot>>) -> Self {
        Self { handle, _driver: driver }
    }
}

pub(crate) type OwnedSlot<T> = Slot<Owned<T>>;

/// The handles of one client: they are closed with it.
#[derive(Clone)]
pub(crate) struct Scope {
    driver: Option<Arc<DriverSlot>>,
    handles: Arc<Mutex<Handles>>,
}

#[derive(Default)]
struct Handles {
    open: Vec<Weak<dyn Close>>,
    is_closed: bool,
}

impl Scope {
    pub(crate) fn new(driver: Option<Arc<DriverSlot>>) -> Self {
        Self { driver, handles: Arc::default() }
    }

    /// Makes a handle one of this client's.
    pub(crate) fn own<T: Send + 'static>(
        &self,
        noun: &'static str,
        handle: T,
    ) -> Arc<OwnedSlot<T>> {
        let slot = Slot::new(noun, Owned::from_parts(handle, self.driver.clone()));
        let weak = Arc::downgrade(&slot);
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let is_late = handles.is_closed;
        let open = &mut handles.open;
        // The list is as long as twice the number of live handles at most.
        if open.len() == open.capacity() {
            open.retain(|handle| handle.strong_count() > 0);
        }
        open.push(weak);
        drop(handles);
        // Another thread closed the client while the handle was being added.
        if is_late {
            slot.close();
        }
        slot
    }

    /// Closes all handles, and those that come later.
    pub(crate) fn close(&self) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        handles.is_closed = true;
        let open = std::mem::take(&mut handles.open);
        drop(handles);
        for handle in open.iter().rev().filter_map(Weak::upgrade) {
            handle.close();
        }
    }
}
