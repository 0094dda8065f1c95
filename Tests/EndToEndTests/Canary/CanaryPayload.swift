/// The payload of every push of the canary run. It names the audience, in a form that no other payload has (I6).
struct CanaryPayload: Hashable {
    /// The only receiver that may see the payload.
    enum Audience: Hashable {
        case user(String)
        case device(String)
        case everybody
    }

    let instance: String
    let audience: Audience
    /// Distinguishes pushes to the same audience.
    let number: Int

    /// The payload as text.
    var text: String {
        switch audience {
        case .user(let user): "canary|\(instance)|user|\(user)|\(number)"
        case .device(let device): "canary|\(instance)|device|\(device)|\(number)"
        case .everybody: "canary|\(instance)|everybody||\(number)"
        }
    }

    init(instance: String, audience: Audience, number: Int) {
        self.instance = instance
        self.audience = audience
        self.number = number
    }

    /// Returns nil for a payload that no canary run has pushed.
    init?(_ bytes: some Sequence<UInt8>) {
        let parts = String(decoding: Array(bytes), as: UTF8.self)
            .split(separator: "|", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, parts[0] == "canary", let number = Int(parts[4]) else { return nil }
        switch parts[2] {
        case "user": self.init(instance: parts[1], audience: .user(parts[3]), number: number)
        case "device": self.init(instance: parts[1], audience: .device(parts[3]), number: number)
        case "everybody": self.init(instance: parts[1], audience: .everybody, number: number)
        default: return nil
        }
    }
}
