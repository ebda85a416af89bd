module mixed

go 1.26.0
