/// Follows which device of a user owns single-device data: the one on which the app signed in last (spec D8).
///
/// A sign-in is settled once its device has seen its effect. Between a sign-in and its effect nobody outside the
/// service knows the owner; then nothing is judged.
package struct OwnerChecker: Sendable {
    /// What an app does, and sees of it.
    package enum Event: Sendable, Codable {
        /// The app asks to bind this user, with whatever session.
        case signedIn(device: String, user: String)
        /// The device has seen that the service took the sign-in.
        case settled(device: String)
        /// The process has ended.
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
    /// Users of whom a device had a sign-in under way when it signed in as another: it may take effect late.
    private var stragglers: [String: Set<String>] = [:]
    /// Per user, the last sign-in on a device that has another user now: a disconnected owner stays owner.
    private var departures: [String: Duration] = [:]

    package init() {}

    /// Takes what happened.
    ///
    /// - Parameter time: since the run's beginning.
    package mutating func observe(_ event: Event, at time: Duration) {
        switch event {
        case .signedIn(let device, let user):
            if let before = signIns[device], before.user != user {
                devicesByUser[before.user]?.remove(device)
                departures[before.user] = max(before.at, departures[before.user] ?? before.at)
                if before.settledAt == nil { stragglers[before.user, default: []].insert(device) }
            }
            signIns[device] = SignIn(user: user, at: time)
            devicesByUser[user, default: []].insert(device)
        case .settled(let device):
            guard signIns[device]?.settledAt == nil, let user = signIns[device]?.user else { return }
            signIns[device]?.settledAt = time
            for other in Array(stragglers.keys) where other != user { stragglers[other]?.remove(device) }
        case .died(let device): signIns[device]?.isAlive = false
        }
    }

    /// When the app asked last on this device.
    package func signedIn(_ device: String) -> Duration? { signIns[device]?.at }

    /// Whether the service must serve the user's single-device data by now: every device that may be the owner is there
    /// since before this time.
    package func isServable(_ user: String, since time: Duration) -> Bool {
        guard let (_, newest) = newest(of: user), stragglers[user]?.isEmpty != false else { return false }
        return signIns(of: user).allSatisfy { signIn in
            let mayOwn = signIn.at == newest.at || signIn.settledAt.map { $0 >= newest.at } ?? true
            return !mayOwn || signIn.isAlive && signIn.at < time
        }
    }

    /// Whether a push went to another device than the owner: an owner was settled when the push began, and is still.
    ///
    /// - Returns: the owner that should have been given it; nil: nothing is wrong.
    package func rightful(of user: String, insteadOf device: String, forPushBegunAt time: Duration) -> String? {
        guard let (owner, newest) = newest(of: user), owner != device, let settledAt = newest.settledAt,
            settledAt < time, isAlone(newest, of: user)
        else { return nil }
        return owner
    }

    private func signIns(of user: String) -> [SignIn] { (devicesByUser[user] ?? []).compactMap { signIns[$0] } }

    /// The last sign-in; nil: it was on a device that has another user now.
    private func newest(of user: String) -> (device: String, signIn: SignIn)? {
        let newest = (devicesByUser[user] ?? []).compactMap { device in signIns[device].map { (device, $0) } }
            .max { $0.1.at < $1.1.at }
        guard let newest, newest.1.at > departures[user] ?? .zero - .seconds(1) else { return nil }
        return newest
    }

    /// Whether every other sign-in was settled before the newest began.
    private func isAlone(_ newest: SignIn, of user: String) -> Bool {
        guard stragglers[user]?.isEmpty != false else { return false }
        return signIns(of: user).allSatisfy { signIn in
            signIn.at == newest.at || signIn.settledAt.map { $0 < newest.at } ?? false
        }
    }
}
