module crosslanguage

go 1.22
