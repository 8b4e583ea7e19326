module crosslanguage

go 1.21
