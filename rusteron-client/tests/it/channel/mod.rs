mod kinds;
mod uri;
