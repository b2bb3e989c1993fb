//! The parts that a program without std needs: an allocator, a panic handler, choices.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicUsize, Ordering};

use selvedge_core::{Choose, Ratio, Weights};

/// Choices that count upwards; a device takes them from its generator.
pub(crate) struct Steps(pub(crate) u64);

impl Choose for Steps {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        self.0.checked_rem(bound).unwrap_or_default()
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        self.below(ratio.denominator.into()) < u64::from(ratio.numerator)
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        match weights.total() {
            0 => None,
            total => Some(weights.locate(self.below(total))),
        }
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// The prebuilt alloc refers to the unwinder, which a program that aborts does not have. Nothing calls this.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[global_allocator]
static HEAP: Heap = Heap {
    bytes: UnsafeCell::new([0; HEAP_LEN]),
    used: AtomicUsize::new(0),
};

const HEAP_LEN: usize = 1 << 20;

/// Hands out memory and never takes any back: enough for a program that ends.
struct Heap {
    bytes: UnsafeCell<[u8; HEAP_LEN]>,
    used: AtomicUsize,
}

// SAFETY: `used` only grows, and atomically, so no two callers get the same bytes.
unsafe impl Sync for Heap {}

// SAFETY: each range handed out lies inside `bytes`, is aligned as asked and is never handed out
// again.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        let mut start = 0;
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                let address = base.addr() + used;
                start = used + (address.next_multiple_of(layout.align()) - address);
                let end = start.checked_add(layout.size())?;
                (end <= HEAP_LEN).then_some(end)
            });
        match taken {
            // SAFETY: `start` is at most `HEAP_LEN`.
            Ok(_) => unsafe { base.add(start) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
