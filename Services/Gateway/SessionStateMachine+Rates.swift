import DeviceProtocol

// The end of a session that was sent too much.
extension SessionStateMachine {
    /// The device, its user or its app has used up what it may.
    mutating func refused(_ refusal: RateRefusal) -> [SessionAction] {
        phase == .closed ? [] : close(refusal.code, refusal.reason)
    }
}
