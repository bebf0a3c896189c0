//! Pseudorandom numbers that depend only on a seed.

/// The generator SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates the generator of one case. Cases of one seed have nothing in common.
    pub(crate) fn of_case(seed: u64, case: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next() ^ case.wrapping_mul(0xd134_2543_de82_ef95);
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    /// Returns a number below a limit, or 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let number = self.next().checked_rem(limit as u64).unwrap_or_default();
        usize::try_from(number).unwrap_or_default()
    }

    /// Returns `true` once in this many times.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns a number below a limit. Small ones are much more frequent than large ones.
    pub(crate) fn small(&mut self, limit: usize) -> usize {
        let bits = usize::BITS - limit.leading_zeros();
        let bits = self.below(bits as usize + 1);
        self.below((1 << bits).min(limit))
    }

    /// Returns one of the items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes().first().copied().unwrap_or_default()
    }
}
