//! Tests of what is stored, on files and on disks that fail.

mod crash;
mod damage;
mod disk;
mod folder;
mod full;
mod log;
