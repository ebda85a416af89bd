package cli

// FollowDrain is followDrain for tests on a simulated clock.
var FollowDrain = followDrain
