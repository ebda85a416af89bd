module module

go 1.26
