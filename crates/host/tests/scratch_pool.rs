//! Threads that share a pool of scratch memory.

use shardtool_host::scratch_pool::ScratchPool;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn admits_no_more_than_the_pool_and_serves_every_thread() {
    let (pool, used) = (ScratchPool::new(100), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (pool, used) = (&pool, &used);
            scope.spawn(move || {
                for i in 0..500u64 {
                    let bytes = 1 + (thread * 31 + i * 17) % 100;
                    let held = pool.admit(bytes).map_err(drop).unwrap();
                    assert!(used.fetch_add(bytes, Ordering::SeqCst) + bytes <= 100);
                    used.fetch_sub(bytes, Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
    assert_eq!(pool.admit(101).err(), Some(100));
}
