mod drift;
mod java;
