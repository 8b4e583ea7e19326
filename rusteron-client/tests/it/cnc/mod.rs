mod cnc_file;
mod stream_positions;
