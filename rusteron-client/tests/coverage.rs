//! Every function that `aeronc.h` declares, and the Rust item that reaches it.

#![allow(missing_docs)]

use std::time::Duration;

use rusteron_client::*;
use rusteron_codegen::{Row, Sources, coverage, coverage_problems};

/// So many functions has the header of Aeron 1.54.0.
const FUNCTIONS: usize = 229;
const MOST_REASONS: usize = 15;

type Fragment = fn(&[u8], &Header<'_>);
type Controlled = fn(&[u8], &Header<'_>) -> Action;
type Block = fn(&[u8], i32, i32);
type CounterHandler = fn(&CountersReader<'_>, i64, i32);

#[test]
fn every_function_of_the_header_is_reached_or_has_a_reason() {
    // Names the generated methods of `Context`, which the tables below leave out.
    let generated = include!(concat!(env!("OUT_DIR"), "/coverage.rs"));
    assert_eq!(generated.declared.len(), FUNCTIONS);
    let table = [
        context(),
        client(),
        registrations(),
        publications(),
        exclusive_publications(),
        subscriptions(),
        images_and_messages(),
        counters_and_tools(),
        omitted(),
    ]
    .concat();
    let here = env!("CARGO_MANIFEST_DIR");
    let sources = Sources::new()
        .rust_dir(format!("{here}/src"))
        .and_then(|sources| sources.c_file(format!("{here}/../rusteron-sys/shim/rusteron_shim.c")))
        .expect("sources");
    let problems = coverage_problems(generated, &table, &sources, MOST_REASONS);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn context() -> Vec<Row> {
    coverage! {
        calls aeron_context_init => Context::new;
        calls aeron_context_close => drop::<Context>;
        calls aeron_context_set_idle_strategy => Context::set_idle_strategy;
        calls aeron_context_set_error_handler => Context::set_error_handler as fn(_, fn(&Error)) -> _;
        calls aeron_context_set_publication_error_frame_handler
            => Context::set_publication_error_handler as fn(_, fn(&PublicationError)) -> _;
        calls aeron_context_set_on_new_publication
            => Context::set_on_new_publication as fn(_, fn(&NewResource)) -> _;
        calls aeron_context_set_on_new_exclusive_publication
            => Context::set_on_new_exclusive_publication as fn(_, fn(&NewResource)) -> _;
        calls aeron_context_set_on_new_subscription
            => Context::set_on_new_subscription as fn(_, fn(&NewResource)) -> _;
        calls aeron_context_set_on_available_counter
            => Context::set_on_available_counter as fn(_, CounterHandler) -> _;
        calls aeron_context_set_on_unavailable_counter
            => Context::set_on_unavailable_counter as fn(_, CounterHandler) -> _;
        calls aeron_context_set_on_close_client => Context::set_on_close as fn(_, fn()) -> _;
        replaces aeron_context_set_agent_on_start_function
            => Context::set_agent_on_start as fn(_, fn(&str)) -> _;
        calls aeron_context_request_driver_termination
            => request_driver_termination as fn(&'static str, _) -> _;
        calls aeron_default_path => Context::default_dir;
        calls aeron_properties_buffer_load => load_properties;
        replaces aeron_properties_file_load => load_properties_file as unsafe fn(&'static str) -> _;
    }
    .to_vec()
}

fn client() -> Vec<Row> {
    coverage! {
        calls aeron_init, aeron_start => Aeron::connect;
        calls aeron_close => drop::<Aeron>;
        calls aeron_is_closed => Aeron::is_closed;
        calls aeron_main_do_work => Aeron::do_work;
        replaces aeron_main_idle_strategy => IdleStrategyKind::new_strategy;
        replaces aeron_context => Aeron::context;
        calls aeron_client_id => Aeron::client_id;
        calls aeron_next_correlation_id => Aeron::next_correlation_id;
        calls aeron_async_next_session_id => Aeron::next_session_id, Aeron::async_next_session_id;
        calls aeron_async_next_session_id_poll => Registration::<NextSessionId>::poll;
        calls aeron_counters_reader => Aeron::counters_reader;
        replaces aeron_add_available_counter_handler
            => Aeron::add_available_counter_handler as fn(_, CounterHandler) -> _;
        replaces aeron_add_unavailable_counter_handler
            => Aeron::add_unavailable_counter_handler as fn(_, CounterHandler) -> _;
        replaces aeron_add_close_handler => Aeron::add_close_handler as fn(_, fn()) -> _;
        replaces aeron_remove_available_counter_handler, aeron_remove_unavailable_counter_handler,
            aeron_remove_close_handler => drop::<Handler>;
        calls aeron_errcode => Error::code, Error::kind;
        calls aeron_errmsg => Error::message;
        calls aeron_version_full, aeron_version_text, aeron_version_major, aeron_version_minor,
            aeron_version_patch, aeron_version_gitsha => AeronVersion::linked;
    }
    .to_vec()
}

fn registrations() -> Vec<Row> {
    coverage! {
        calls aeron_async_add_publication => Aeron::add_publication as fn(_, &'static str, _) -> _,
            Aeron::async_add_publication as fn(_, &'static str, _) -> _;
        calls aeron_async_add_publication_poll => Registration::<Publication>::poll;
        calls aeron_async_add_publication_cancel => drop::<Registration<Publication>>;
        calls aeron_async_add_publication_get_registration_id
            => Registration::<Publication>::registration_id;
        calls aeron_async_add_exclusive_publication
            => Aeron::add_exclusive_publication as fn(_, &'static str, _) -> _,
            Aeron::async_add_exclusive_publication as fn(_, &'static str, _) -> _;
        calls aeron_async_add_exclusive_publication_poll => Registration::<ExclusivePublication>::poll;
        calls aeron_async_add_exclusive_publication_cancel => drop::<Registration<ExclusivePublication>>;
        replaces aeron_async_add_exclusive_publication_get_registration_id
            => Registration::<ExclusivePublication>::registration_id;
        calls aeron_async_add_subscription => Aeron::add_subscription as fn(_, &'static str, _) -> _,
            Aeron::async_add_subscription as fn(_, &'static str, _) -> _,
            SubscriptionBuilder::add, SubscriptionBuilder::async_add;
        calls aeron_async_add_subscription_poll => Registration::<Subscription>::poll;
        calls aeron_async_add_subscription_cancel, aeron_async_remove_subscription
            => drop::<Registration<Subscription>>;
        calls aeron_async_add_subscription_get_registration_id
            => Registration::<Subscription>::registration_id;
        calls aeron_async_add_counter => Aeron::add_counter, Aeron::async_add_counter;
        calls aeron_async_add_static_counter
            => Aeron::add_static_counter, Aeron::async_add_static_counter;
        calls aeron_async_add_counter_poll => Registration::<Counter>::poll;
        calls aeron_async_add_counter_cancel => drop::<Registration<Counter>>;
        replaces aeron_async_add_counter_get_registration_id
            => Registration::<Counter>::registration_id;
        calls aeron_async_destination_get_registration_id => DestinationRegistration::registration_id;
    }
    .to_vec()
}

fn publications() -> Vec<Row> {
    coverage! {
        calls aeron_publication_offer => Publication::offer,
            Publication::offer_with_reserved_value as fn(_, _, fn(&[u8]) -> i64) -> _;
        calls aeron_publication_offerv => Publication::offer_parts;
        replaces aeron_publication_try_claim => Publication::try_claim;
        replaces aeron_buffer_claim_commit => BufferClaim::commit;
        replaces aeron_buffer_claim_abort => BufferClaim::abort, drop::<BufferClaim<'_>>;
        calls aeron_publication_is_connected => Publication::is_connected;
        calls aeron_publication_is_closed => Publication::is_closed;
        calls aeron_publication_position => Publication::position;
        calls aeron_publication_position_limit => Publication::position_limit;
        calls aeron_publication_channel_status => Publication::channel_status;
        calls aeron_publication_local_sockaddrs => Publication::local_addresses;
        calls aeron_publication_constants => Publication::constants;
        replaces aeron_publication_channel => Publication::channel;
        replaces aeron_publication_stream_id => Publication::stream_id;
        replaces aeron_publication_session_id => Publication::session_id;
        calls aeron_publication_async_add_destination
            => Publication::add_destination as fn(_, &'static str) -> _,
            Publication::async_add_destination as fn(_, &'static str) -> _;
        calls aeron_publication_async_remove_destination
            => Publication::remove_destination as fn(_, &'static str) -> _,
            Publication::async_remove_destination as fn(_, &'static str) -> _;
        calls aeron_publication_async_remove_destination_by_id
            => Publication::remove_destination_by_id, Publication::async_remove_destination_by_id;
        calls aeron_publication_async_destination_poll => DestinationRegistration::poll;
        replaces aeron_publication_close => Publication::close, drop::<Publication>,
            Publication::close_with as fn(_, fn());
    }
    .to_vec()
}

fn exclusive_publications() -> Vec<Row> {
    coverage! {
        calls aeron_exclusive_publication_offer => ExclusivePublication::offer,
            ExclusivePublication::offer_with_reserved_value as fn(_, _, fn(&[u8]) -> i64) -> _;
        calls aeron_exclusive_publication_offerv => ExclusivePublication::offer_parts;
        calls aeron_exclusive_publication_try_claim => ExclusivePublication::try_claim;
        calls aeron_exclusive_publication_append_padding => ExclusivePublication::append_padding;
        replaces aeron_exclusive_publication_offer_block => ExclusivePublication::offer_block;
        calls aeron_exclusive_publication_is_connected => ExclusivePublication::is_connected;
        calls aeron_exclusive_publication_is_closed => ExclusivePublication::is_closed;
        calls aeron_exclusive_publication_position => ExclusivePublication::position;
        calls aeron_exclusive_publication_position_limit => ExclusivePublication::position_limit;
        calls aeron_exclusive_publication_channel_status => ExclusivePublication::channel_status;
        calls aeron_exclusive_publication_local_sockaddrs => ExclusivePublication::local_addresses;
        calls aeron_exclusive_publication_constants => ExclusivePublication::constants;
        calls aeron_exclusive_publication_async_add_destination
            => ExclusivePublication::add_destination as fn(_, &'static str) -> _,
            ExclusivePublication::async_add_destination as fn(_, &'static str) -> _;
        calls aeron_exclusive_publication_async_remove_destination
            => ExclusivePublication::remove_destination as fn(_, &'static str) -> _,
            ExclusivePublication::async_remove_destination as fn(_, &'static str) -> _;
        calls aeron_exclusive_publication_async_remove_destination_by_id
            => ExclusivePublication::remove_destination_by_id,
            ExclusivePublication::async_remove_destination_by_id;
        calls aeron_exclusive_publication_async_destination_poll => DestinationRegistration::poll;
        calls aeron_exclusive_publication_revoke_on_close => ExclusivePublication::revoke_on_close;
        replaces aeron_exclusive_publication_revoke => ExclusivePublication::revoke;
        replaces aeron_exclusive_publication_close
            => ExclusivePublication::close, drop::<ExclusivePublication>,
            ExclusivePublication::close_with as fn(_, fn());
    }
    .to_vec()
}

fn subscriptions() -> Vec<Row> {
    coverage! {
        replaces aeron_subscription_poll => Subscription::poll_fragments as fn(_, Fragment, _) -> _,
            Subscription::poll as fn(_, Fragment, _) -> _;
        replaces aeron_subscription_controlled_poll
            => Subscription::controlled_poll_fragments as fn(_, Controlled, _) -> _,
            Subscription::controlled_poll as fn(_, Controlled, _) -> _;
        replaces aeron_subscription_block_poll => Subscription::block_poll as fn(_, Block, _) -> _;
        calls aeron_subscription_is_connected => Subscription::is_connected;
        calls aeron_subscription_is_closed => Subscription::is_closed;
        calls aeron_subscription_constants => Subscription::constants;
        calls aeron_subscription_image_count => Subscription::image_count;
        replaces aeron_subscription_image_by_session_id => Subscription::image_by_session_id;
        replaces aeron_subscription_image_at_index => Subscription::image_at_index;
        replaces aeron_subscription_for_each_image => Subscription::images;
        calls aeron_subscription_channel_status => Subscription::channel_status;
        calls aeron_subscription_local_sockaddrs => Subscription::local_addresses;
        calls aeron_subscription_resolved_endpoint => Subscription::resolved_endpoint;
        calls aeron_subscription_try_resolve_channel_endpoint_port
            => Subscription::try_resolve_channel_endpoint_port;
        calls aeron_subscription_async_add_destination
            => Subscription::add_destination as fn(_, &'static str) -> _,
            Subscription::async_add_destination as fn(_, &'static str) -> _;
        calls aeron_subscription_async_remove_destination
            => Subscription::remove_destination as fn(_, &'static str) -> _,
            Subscription::async_remove_destination as fn(_, &'static str) -> _;
        calls aeron_subscription_async_destination_poll => DestinationRegistration::poll;
        calls aeron_subscription_close => Subscription::close, drop::<Subscription>,
            Subscription::close_with as fn(_, fn());
    }
    .to_vec()
}

fn images_and_messages() -> Vec<Row> {
    coverage! {
        replaces aeron_image_poll => Image::poll_fragments as fn(_, Fragment, _) -> _,
            Image::poll as fn(_, Fragment, _) -> _;
        replaces aeron_image_bounded_poll => Image::bounded_poll_fragments as fn(_, Fragment, _, _) -> _,
            Image::bounded_poll as fn(_, Fragment, _, _) -> _;
        replaces aeron_image_controlled_poll
            => Image::controlled_poll_fragments as fn(_, Controlled, _) -> _,
            Image::controlled_poll as fn(_, Controlled, _) -> _;
        replaces aeron_image_bounded_controlled_poll
            => Image::bounded_controlled_poll_fragments as fn(_, Controlled, _, _) -> _,
            Image::bounded_controlled_poll as fn(_, Controlled, _, _) -> _;
        replaces aeron_image_block_poll => Image::block_poll as fn(_, Block, _) -> _;
        calls aeron_image_constants => Image::constants;
        replaces aeron_image_position => Image::position;
        replaces aeron_image_is_closed => Image::is_closed;
        calls aeron_image_is_end_of_stream => Image::is_end_of_stream;
        calls aeron_image_end_of_stream_position => Image::end_of_stream_position;
        calls aeron_image_active_transport_count => Image::active_transport_count;
        calls aeron_image_is_publication_revoked => Image::is_publication_revoked;
        calls aeron_image_reject => Image::reject;
        replaces aeron_header_values => Header::frame_length, Header::version, Header::flags,
            Header::frame_type, Header::term_offset, Header::session_id, Header::stream_id,
            Header::term_id, Header::reserved_value, Header::initial_term_id;
        replaces aeron_header_position => Header::position;
        replaces aeron_header_position_bits_to_shift => Header::position_bits_to_shift;
        replaces aeron_header_next_term_offset => Header::next_term_offset;
        replaces aeron_header_context => Header::image_correlation_id;
        replaces aeron_fragment_assembler_create, aeron_controlled_fragment_assembler_create
            => FragmentAssembler::new;
        replaces aeron_fragment_assembler_delete, aeron_controlled_fragment_assembler_delete
            => drop::<FragmentAssembler>;
        replaces aeron_fragment_assembler_handler => FragmentAssembler::handler::<Fragment>;
        replaces aeron_controlled_fragment_assembler_handler
            => FragmentAssembler::controlled_handler::<Controlled>;
        replaces aeron_fragment_assembler_delete_session_buffer,
            aeron_controlled_fragment_assembler_delete_session_buffer
            => FragmentAssembler::remove_session;
        replaces aeron_image_fragment_assembler_create, aeron_image_controlled_fragment_assembler_create
            => ImageFragmentAssembler::new;
        replaces aeron_image_fragment_assembler_delete, aeron_image_controlled_fragment_assembler_delete
            => drop::<ImageFragmentAssembler>;
        replaces aeron_image_fragment_assembler_handler => ImageFragmentAssembler::handler::<Fragment>;
        replaces aeron_image_controlled_fragment_assembler_handler
            => ImageFragmentAssembler::controlled_handler::<Controlled>;
    }
    .to_vec()
}

fn counters_and_tools() -> Vec<Row> {
    coverage! {
        calls aeron_counter_addr => Counter::as_atomic;
        calls aeron_counter_constants => Counter::constants;
        calls aeron_counter_close => drop::<Counter>;
        calls aeron_counter_is_closed => Counter::is_closed;
        calls aeron_counters_reader_get_buffers => Aeron::counters_reader;
        calls aeron_counters_reader_max_counter_id => CountersReader::max_counter_id;
        replaces aeron_counters_reader_foreach_counter
            => CountersReader::iter, CountersReader::for_each as fn(_, fn(&CounterSnapshot));
        replaces aeron_print_counters => CountersReader::iter, ToString::to_string as fn(&CounterSnapshot) -> _;
        replaces aeron_counters_reader_find_by_type_id_and_registration_id
            => CountersReader::find_by_type_id_and_registration_id;
        replaces aeron_counters_reader_addr => CountersReader::value, CountersReader::counter;
        replaces aeron_counters_reader_counter_registration_id => CountersReader::registration_id;
        replaces aeron_counters_reader_counter_owner_id => CountersReader::owner_id;
        replaces aeron_counters_reader_counter_reference_id => CountersReader::reference_id;
        replaces aeron_counters_reader_counter_state => CountersReader::state;
        replaces aeron_counters_reader_counter_type_id => CountersReader::type_id;
        replaces aeron_counters_reader_metadata_key => CountersReader::key;
        replaces aeron_counters_reader_counter_label => CountersReader::label;
        replaces aeron_counters_reader_free_for_reuse_deadline_ms
            => CountersReader::free_for_reuse_deadline;
        calls aeron_cnc_init => CncFile::open as fn(&'static str, Duration) -> _;
        calls aeron_cnc_close => drop::<CncFile>;
        calls aeron_cnc_constants => CncFile::constants;
        calls aeron_cnc_filename => CncFile::filename;
        calls aeron_cnc_to_driver_heartbeat => CncFile::heartbeat;
        calls aeron_cnc_counters_reader => CncFile::counters;
        replaces aeron_cnc_error_log_read => CncFile::errors, CncFile::errors_since;
        replaces aeron_cnc_loss_reporter_read => CncFile::loss_report;
        replaces aeron_is_driver_active => CncFile::is_active;
    }
    .to_vec()
}

fn omitted() -> Vec<Row> {
    coverage! {
        omits aeron_fprintf, aeron_set_fprintf_handler, aeron_get_fprintf_handler:
            "their format and va_list are C's, and cannot be made safe";
        omits aeron_context_get_error_handler, aeron_context_get_error_handler_clientd,
            aeron_context_get_publication_error_frame_handler,
            aeron_context_get_publication_error_frame_handler_clientd,
            aeron_context_get_on_new_publication, aeron_context_get_on_new_publication_clientd,
            aeron_context_get_on_new_exclusive_publication,
            aeron_context_get_on_new_exclusive_publication_clientd,
            aeron_context_get_on_new_subscription, aeron_context_get_on_new_subscription_clientd,
            aeron_context_get_on_available_counter, aeron_context_get_on_available_counter_clientd,
            aeron_context_get_on_unavailable_counter, aeron_context_get_on_unavailable_counter_clientd,
            aeron_context_get_on_close_client, aeron_context_get_on_close_client_clientd:
            "a boxed closure cannot be handed out while C may call it";
        omits aeron_context_get_agent_on_start_function, aeron_context_get_agent_on_start_state:
            "declared by C, defined nowhere";
        omits aeron_publication_error_values_copy, aeron_publication_error_values_delete:
            "C's memory: a PublicationError is a copy of Rust's";
        omits aeron_async_remove_publication, aeron_async_remove_exclusive_publication,
            aeron_async_remove_counter:
            "frees what has this id, whoever holds it: dropping the handle is the way";
        omits aeron_subscription_image_retain, aeron_subscription_image_release, aeron_image_release:
            "an Image borrows its subscription, which keeps it meanwhile";
        omits aeron_nano_clock, aeron_epoch_clock: "Instant and SystemTime are Rust's clocks";
        omits aeron_properties_http_load, aeron_properties_load:
            "a request over plain HTTP: what was fetched by other means goes to load_properties";
    }
    .to_vec()
}
