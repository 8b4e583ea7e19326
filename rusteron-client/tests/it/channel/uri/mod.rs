mod builder;
mod check;
mod oracle;
mod parameter;
