"""What servers may speak besides the protocol itself: each file is one `Extension`."""
