//! The cost of sealing a datagram, and a comparison of ciphers.
//!
//! One frame of 104 bytes becomes a datagram of 147 with each. Ours also looks up the sender,
//! checks the window, and copies the frame once.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench that cannot be set up fails by panicking"
)]

use core::hint::black_box;

use aes_gcm::aead::{AeadInOut, KeyInit};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Keyring, OVERHEAD, Opener, Sealer};

const FRAME: [u8; 104] = [0x5E; 104];
const KIND: u8 = 1;

fn keyring() -> Keyring {
    Keyring::parse(&"17".repeat(32)).unwrap()
}

fn sealing(c: &mut Criterion) {
    let mut group = c.benchmark_group("seal");
    let mut sealer = Sealer::new(&keyring(), "bench", NodeId(1), Epoch(1));
    let mut opener = Opener::new(keyring(), "bench".to_owned(), 10);
    let (mut datagram, mut frame) = (Vec::new(), Vec::new());
    group.bench_function("seal", |b| {
        b.iter(|| sealer.seal(KIND, black_box(&FRAME), &mut datagram).unwrap());
    });
    group.bench_function("seal and open", |b| {
        b.iter(|| {
            sealer.seal(KIND, black_box(&FRAME), &mut datagram).unwrap();
            opener
                .open(KIND, &datagram, Time::ZERO, &mut frame)
                .unwrap()
        });
    });
    // The cost of a flood: a datagram that claims to be of a new start, and a datagram of a known
    // start.
    let mut forged = datagram.clone();
    *forged.last_mut().unwrap() ^= 1;
    // The highest bits of the counter, which ends the head.
    let counter = datagram.len() - FRAME.len() - 16 - 1;
    forged.get_mut(counter).map(|byte| *byte = 0x7F).unwrap();
    group.bench_function("refuse a forgery", |b| {
        b.iter(|| {
            opener
                .open(KIND, black_box(&forged), Time::ZERO, &mut frame)
                .is_err()
        });
    });
    group.bench_function("refuse a replay", |b| {
        b.iter(|| {
            opener
                .open(KIND, black_box(&datagram), Time::ZERO, &mut frame)
                .is_err()
        });
    });
    group.bench_function("hear of a new start", |b| {
        b.iter_batched(
            || {
                let mut sealer = Sealer::new(&keyring(), "bench", NodeId(2), Epoch(1));
                let mut datagram = Vec::new();
                sealer.seal(KIND, &FRAME, &mut datagram).unwrap();
                (Opener::new(keyring(), "bench".to_owned(), 10), datagram)
            },
            |(mut opener, datagram)| {
                opener
                    .open(KIND, &datagram, Time::ZERO, &mut frame)
                    .unwrap();
                opener
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn cipher<C: KeyInit + AeadInOut>(c: &mut Criterion, name: &str) {
    let key = vec![0x17; C::key_size()];
    let cipher = C::new_from_slice(&key).unwrap();
    let nonce = aes_gcm::aead::Nonce::<C>::default();
    let head = [0; OVERHEAD - 16];
    let mut frame = FRAME;
    c.benchmark_group("cipher").bench_function(name, |b| {
        b.iter(|| {
            let tag = cipher.encrypt_inout_detached(&nonce, &head, frame.as_mut_slice().into());
            let tag = tag.unwrap();
            let opened =
                cipher.decrypt_inout_detached(&nonce, &head, frame.as_mut_slice().into(), &tag);
            opened.unwrap();
            black_box(&frame);
        });
    });
}

fn ciphers(c: &mut Criterion) {
    cipher::<aes_gcm::Aes256Gcm>(c, "AES-256-GCM, seal and open");
    cipher::<aes_gcm::Aes128Gcm>(c, "AES-128-GCM, seal and open");
    cipher::<chacha20poly1305::ChaCha20Poly1305>(c, "ChaCha20-Poly1305, seal and open");
}

criterion_group!(benches, sealing, ciphers);
criterion_main!(benches);
