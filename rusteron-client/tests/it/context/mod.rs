mod counter_handlers;
mod events;
