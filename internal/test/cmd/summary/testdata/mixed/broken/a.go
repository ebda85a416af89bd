package broken

var x int = "text"
