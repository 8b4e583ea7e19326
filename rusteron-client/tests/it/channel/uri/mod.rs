mod builder;
mod check;
mod oracle;
mod parameter;
mod warnings;
