module inprocess

go 1.21

require crosslanguage v0.0.0

replace crosslanguage => ../../go
