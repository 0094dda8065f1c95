/// Follows which device owns a user's single-device data: the device on which the app last asked for a bind (D8).
///
/// A sign-in is complete when its device has seen its effect. Between a sign-in and its effect the owner is unknown
/// outside the service, so the checker decides nothing.
package struct OwnerChecker: Sendable {
    /// An action of an app, or an effect that the app has seen.
    package enum Event: Sendable, Codable {
        /// The app asks to bind this user, with any session.
        case signedIn(device: String, user: String)
        /// The device has seen the effect of the sign-in.
        case settled(device: String)
        /// The process ended.
        case died(device: String)
    }

    private struct SignIn: Sendable {
        let user: String
        let at: Duration
        var settledAt: Duration?
        var isAlive = true
    }

    /// The newest sign-in of each device.
    private var signIns: [String: SignIn] = [:]
    private var devicesByUser: [String: Set<String>] = [:]
    /// By user, devices that changed to another user before their sign-in was complete. That sign-in can still take
    /// effect.
    private var stragglers: [String: Set<String>] = [:]
    /// By user, the time until which a device that has another user now can have become the owner: the end of its last
    /// sign-in, or of a straggler. A disconnected owner stays owner.
    private var departures: [String: Duration] = [:]

    package init() {}

    /// Records an event.
    ///
    /// - Parameter time: since the start of the run.
    package mutating func observe(_ event: Event, at time: Duration) {
        switch event {
        case .signedIn(let device, let user):
            if let before = signIns[device], before.user != user {
                devicesByUser[before.user]?.remove(device)
                let latest = before.settledAt ?? before.at
                departures[before.user] = max(latest, departures[before.user] ?? latest)
                if before.settledAt == nil { stragglers[before.user, default: []].insert(device) }
            }
            signIns[device] = SignIn(user: user, at: time)
            devicesByUser[user, default: []].insert(device)
        case .settled(let device):
            guard signIns[device]?.settledAt == nil, let user = signIns[device]?.user else { return }
            signIns[device]?.settledAt = time
            for other in Array(stragglers.keys) where other != user && stragglers[other]?.remove(device) != nil {
                // The older sign-in can have taken effect after every newer one that began before now.
                departures[other] = time
            }
        case .died(let device): signIns[device]?.isAlive = false
        }
    }

    /// Time of the last sign-in on this device.
    package func signedIn(_ device: String) -> Duration? { signIns[device]?.at }

    /// Whether the service must deliver the user's single-device data: every device that can be the owner has run since
    /// before this time.
    package func isServable(_ user: String, since time: Duration) -> Bool {
        guard let (_, newest) = newest(of: user), stragglers[user]?.isEmpty != false else { return false }
        return signIns(of: user).allSatisfy { signIn in
            let mayOwn = signIn.at == newest.at || signIn.settledAt.map { $0 >= newest.at } ?? true
            return !mayOwn || signIn.isAlive && signIn.at < time
        }
    }

    /// Whether a push went to another device than the owner. The owner must be known from before the push until now.
    ///
    /// - Returns: the owner that should have received the push. The value is nil if nothing is wrong or the owner is
    /// unknown.
    package func rightful(of user: String, insteadOf device: String, forPushBegunAt time: Duration) -> String? {
        guard let (owner, newest) = newest(of: user), owner != device, let settledAt = newest.settledAt,
            settledAt < time, isAlone(newest, of: user)
        else { return nil }
        return owner
    }

    private func signIns(of user: String) -> [SignIn] { (devicesByUser[user] ?? []).compactMap { signIns[$0] } }

    /// The last sign-in. The value is nil if a device that has another user now can be the owner.
    private func newest(of user: String) -> (device: String, signIn: SignIn)? {
        let newest = (devicesByUser[user] ?? []).compactMap { device in signIns[device].map { (device, $0) } }
            .max { $0.1.at < $1.1.at }
        guard let newest, newest.1.at > departures[user] ?? .zero - .seconds(1) else { return nil }
        return newest
    }

    /// Whether every other sign-in was complete before the newest one began.
    private func isAlone(_ newest: SignIn, of user: String) -> Bool {
        guard stragglers[user]?.isEmpty != false else { return false }
        return signIns(of: user).allSatisfy { signIn in
            signIn.at == newest.at || signIn.settledAt.map { $0 < newest.at } ?? false
        }
    }
}
