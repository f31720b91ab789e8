//! cloud-emulator
