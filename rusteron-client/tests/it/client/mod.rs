mod async_connect;
mod counter;
mod destination;
mod invoker;
mod lifecycle;
mod next_session_id;
mod wait;
