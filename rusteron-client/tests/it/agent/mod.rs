mod composite_agent;
mod invoker;
mod mock;
mod runner;
mod shutdown_signal;
