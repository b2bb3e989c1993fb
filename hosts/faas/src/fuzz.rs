//! Fuzz targets as plain functions: they take bytes and panic when a promise is broken.
