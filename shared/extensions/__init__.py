"""Extensions of the protocol: each file is one `Extension`."""
