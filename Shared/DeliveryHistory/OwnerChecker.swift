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

    package init() {}

    /// Takes what happened.
    ///
    /// - Parameter time: since the run's beginning.
    package mutating func observe(_ event: Event, at time: Duration) {
        switch event {
        case .signedIn(let device, let user):
            if let before = signIns[device], before.user != user {
                devicesByUser[before.user]?.remove(device)
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

    /// Whether the service must serve the user's single-device data by now: the device on which the app signed in last
    /// is there since before this time, and no other sign-in is under way.
    package func isServable(_ user: String, since time: Duration) -> Bool {
        guard let (_, newest) = newest(of: user), newest.isAlive, newest.at < time else { return false }
        return isAlone(newest, of: user)
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

    private func newest(of user: String) -> (device: String, signIn: SignIn)? {
        (devicesByUser[user] ?? []).compactMap { device in signIns[device].map { (device, $0) } }
            .max { $0.1.at < $1.1.at }
    }

    /// Whether every other sign-in was settled before the newest began.
    private func isAlone(_ newest: SignIn, of user: String) -> Bool {
        guard stragglers[user]?.isEmpty != false else { return false }
        return (devicesByUser[user] ?? []).allSatisfy { device in
            guard let signIn = signIns[device], signIn.at != newest.at else { return true }
            return signIn.settledAt.map { $0 < newest.at } ?? false
        }
    }
}
