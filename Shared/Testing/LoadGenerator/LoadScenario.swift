import Foundation

/// A load as data: users, devices and steps (`deploy/load/README.md` describes the format).
struct LoadScenario: Hashable, Sendable {
    /// Devices that read late.
    struct Slow: Hashable, Sendable {
        /// Percentage of the devices.
        var percent: Int
        /// Delay before a device reads and acknowledges.
        var milliseconds: Int
    }

    var name: String
    var users = 200
    /// A push to a user goes to all devices of the user.
    var devicesPerUser = 1
    /// Payload size of a push. The first 35 bytes identify the push.
    var payloadBytes = 300
    /// Keep-alive connections to the API.
    var connections = 64
    /// A multi-device Sync ID with target user.
    var bizType = "UCHAT"
    /// An immediate global Sync ID.
    var globalBizType = "GLOBAL-NEWS"
    var slow: Slow?
    var steps: [LoadStep]

    var devices: Int { users * devicesPerUser }
    /// Number of global pushes of the whole scenario.
    var globalPushes: Int {
        steps.flatMap(\.streams).reduce(0) { if case .times(let count) = $1.pace { $0 + count } else { $0 } }
    }

    /// Single pushes to users with one device each: the scenario of `mssctl load` without a file.
    static func single(_ pace: PushStream.Pace) -> LoadScenario {
        LoadScenario(
            name: "single",
            steps: [
                LoadStep(name: "connect", parts: [.connect(concurrency: 64)]),
                LoadStep(name: "push", parts: [.push(PushStream(pace: pace))]),
            ])
    }

    /// Reads a scenario's JSON.
    static func read(_ data: Data) throws(LoadScenarioError) -> LoadScenario {
        do {
            return try JSONDecoder().decode(LoadScenario.self, from: data)
        } catch let error as LoadScenarioError {
            throw error
        } catch DecodingError.dataCorrupted(let context) {
            throw LoadScenarioError(place: "", expected: "expected JSON: \(context.debugDescription)")
        } catch {
            throw LoadScenarioError(place: "", expected: "expected a JSON object")
        }
    }

    /// Overrides the pace of each stream with a rate or a window, and the length of each timed part.
    mutating func pace(rate: Int?, window: Int?, seconds: Int?) {
        for step in steps.indices {
            steps[step].parts = steps[step].parts.map { part in
                switch part {
                case .idle(let planned): return .idle(seconds: seconds ?? planned)
                case .reconnect(let perSecond, let planned):
                    return .reconnect(perSecond: perSecond, seconds: seconds ?? planned)
                case .operate(var stream):
                    (stream.perSecond, stream.seconds) = (rate ?? stream.perSecond, seconds ?? stream.seconds)
                    return .operate(stream)
                case .push(var stream):
                    stream.change(rate: rate, window: window, seconds: seconds)
                    return .push(stream)
                case .connect, .disconnect: return part
                }
            }
        }
    }

    /// Checks rules that concern more than one key.
    ///
    /// - Throws: `LoadScenarioError` if pushes would wait for devices that never connect, or a step names too many
    ///   users.
    func check() throws(LoadScenarioError) {
        guard devicesPerUser <= PushStateTable.devicesPerUserMax else {
            throw LoadScenarioError(
                place: "devicesPerUser", expected: "expected at most \(PushStateTable.devicesPerUserMax)")
        }
        var (isConnected, awaited) = (false, false)
        for (number, step) in steps.enumerated() {
            for part in step.parts {
                switch part {
                case .connect: (isConnected, awaited) = (true, false)
                case .disconnect: isConnected = false
                case .idle: break
                case .reconnect, .operate:
                    if !isConnected { throw Self.early(number) }
                case .push(let stream):
                    // These paces wait for deliveries.
                    switch stream.pace {
                    case .window where !isConnected, .times where !isConnected: throw Self.early(number)
                    default: awaited = awaited || !isConnected
                    }
                    if let users = stream.users, users > self.users {
                        throw LoadScenarioError(
                            place: "steps[\(number)].users",
                            expected: "expected at most \(self.users), the number of users")
                    }
                }
            }
        }
        if awaited {
            throw LoadScenarioError(
                place: "steps", expected: "expected a connect step after pushes to disconnected devices")
        }
    }

    private static func early(_ step: Int) -> LoadScenarioError {
        LoadScenarioError(place: "steps[\(step)]", expected: "expected an earlier connect step")
    }
}
