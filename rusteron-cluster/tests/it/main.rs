//! The cluster client against Aeron's schema, Aeron's encoders and running clusters.

mod codec;
