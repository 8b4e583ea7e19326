mod async_connect;
mod counter;
mod destination;
#[cfg(unix)]
mod forged_answers;
mod invoker;
mod lifecycle;
mod next_session_id;
mod wait;
