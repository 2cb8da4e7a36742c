//! Pages: bounded in items and in bytes.
//!
//! The lists of jobs are bounded by the store. Whatever else may be large is read a few at a time, until there is
//! enough.

use tickwheel_core::ports::Page;

/// How large a page may be.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    /// This many items,
    pub items_max: usize,
    /// and after this many bytes no further one.
    pub bytes_max: usize,
    /// So many are read at once.
    pub step: usize,
}

/// The page of a complete list that is in order: what comes after `after`, and how to go on.
pub fn page_after<T, C: PartialOrd>(
    items: impl IntoIterator<Item = T>,
    after: Option<&C>,
    limit: usize,
    place: impl Fn(&T) -> C,
) -> Page<T, C> {
    let mut rest = items.into_iter().skip_while(|item| after.is_some_and(|after| place(item) <= *after));
    let items: Vec<T> = rest.by_ref().take(limit).collect();
    let next = rest.next().and_then(|_| items.last().map(place));
    Page { items, next }
}

/// A page in the making, read in steps: as long as [`wanted`](Self::wanted) says how much, that much is read and added.
pub struct Gathering<T, C> {
    size: PageSize,
    items: Vec<T>,
    bytes: usize,
    after: Option<C>,
    is_over: bool,
}

impl<T, C: Clone> Gathering<T, C> {
    /// Nothing yet.
    pub const fn new(size: PageSize, after: Option<C>) -> Self {
        Self { size, items: Vec::new(), bytes: 0, after, is_over: false }
    }

    /// After what to read on, and how many; `None`: there is enough.
    pub fn wanted(&self) -> Option<(Option<C>, usize)> {
        let wanted = (self.size.items_max - self.items.len()).min(self.size.step);
        (!self.is_over && wanted > 0).then(|| (self.after.clone(), wanted))
    }

    /// Adds what was read: `weigh` says how many bytes an item has, `place` how to go on after it.
    pub fn add(&mut self, page: Page<T, C>, weigh: impl Fn(&T) -> usize, place: impl Fn(&T) -> C) {
        // A short page that is not the last has cost the store enough.
        let is_short = self.wanted().is_some_and(|(_, wanted)| page.items.len() < wanted);
        self.is_over = is_short || page.next.is_none();
        for item in page.items {
            if self.bytes >= self.size.bytes_max {
                self.is_over = true;
                self.after = self.items.last().map(place);
                return;
            }
            self.bytes += weigh(&item);
            self.items.push(item);
        }
        self.after = page.next;
    }

    /// The page.
    pub fn finish(self) -> Page<T, C> {
        Page { items: self.items, next: self.after }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred numbers; one weighs what it is.
    fn page_of(items_max: usize, bytes_max: usize, after: Option<usize>) -> Page<usize, usize> {
        let mut page = Gathering::new(PageSize { items_max, bytes_max, step: 32 }, after);
        while let Some((after, limit)) = page.wanted() {
            let start = after.map_or(0, |last| last + 1);
            let items: Vec<usize> = (start..100).take(limit).collect();
            let next = items.last().copied().filter(|last| *last < 99);
            page.add(Page { items, next }, |number| *number, |number| *number);
        }
        page.finish()
    }

    #[test]
    fn a_page_has_as_many_items_as_were_asked_for() {
        for limit in [1, 31, 32, 33, 99, 100, 1000] {
            let page = page_of(limit, usize::MAX, None);
            assert_eq!(page.items, (0..limit.min(100)).collect::<Vec<_>>());
            assert_eq!(page.next, (limit < 100).then(|| limit - 1));
        }
    }

    #[test]
    fn a_complete_list_is_cut_into_pages() {
        let page = |after: Option<u32>, limit| {
            let Page { items, next } = page_after([1, 3, 5, 7], after.as_ref(), limit, |number| *number);
            (items, next)
        };
        assert_eq!(page(None, 2), (vec![1, 3], Some(3)));
        assert_eq!(page(Some(3), 2), (vec![5, 7], None));
        assert_eq!(page(Some(4), 1), (vec![5], Some(5)), "what was taken away meanwhile does not matter");
        assert_eq!(page(Some(7), 1), (vec![], None));
        assert_eq!(page(None, 9), (vec![1, 3, 5, 7], None));
    }

    #[test]
    fn a_page_ends_when_it_has_enough_bytes() {
        let page = page_of(1000, 10, Some(40));
        assert_eq!((page.items, page.next), (vec![41], Some(41)));
        let page = page_of(1000, 100, Some(40));
        assert_eq!((page.items, page.next), (vec![41, 42, 43], Some(43)));
    }
}
