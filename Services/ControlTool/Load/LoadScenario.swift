import Foundation

/// A load as data: who is there, and what happens one after the other (`deploy/load/README.md` has the form).
struct LoadScenario: Hashable, Sendable {
    /// Devices that are late.
    struct Slow: Hashable, Sendable {
        /// Of the devices.
        var percent: Int
        /// How long each waits before it reads and acknowledges.
        var milliseconds: Int
    }

    var name: String
    var users = 200
    /// Every push to a user is for all of that user's devices.
    var devicesPerUser = 1
    /// Of a push. The first 35 say which push it is.
    var payloadBytes = 300
    /// Keep-alive connections to the APIs.
    var connections = 64
    /// A Sync ID with user target, for many devices.
    var bizType = "UCHAT"
    /// A global one that goes out at once.
    var globalBizType = "GLOBAL-NEWS"
    var slow: Slow?
    var steps: [LoadStep]

    var devices: Int { users * devicesPerUser }
    /// Pushes to everybody in the whole scenario.
    var globalPushes: Int {
        steps.flatMap(\.streams).reduce(0) { if case .times(let count) = $1.pace { $0 + count } else { $0 } }
    }

    /// One push at a time to devices of users of their own: what `mssctl load` does without a scenario.
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
            throw LoadScenarioError(place: "", expected: "JSON is expected: \(context.debugDescription)")
        } catch {
            throw LoadScenarioError(place: "", expected: "a JSON object is expected")
        }
    }

    /// Puts other numbers in the place of the scenario's: the pace of each stream that has a rate or a window, and how
    /// long anything lasts that lasts some seconds.
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

    /// What no single key is wrong about.
    ///
    /// - Throws: when pushes would wait for devices that never come, or users are named that are not there.
    func check() throws(LoadScenarioError) {
        guard devicesPerUser <= PushBook.devicesPerUserMax else {
            throw LoadScenarioError(
                place: "devicesPerUser", expected: "at most \(PushBook.devicesPerUserMax) can be checked")
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
                    // These go on only when devices have what came before.
                    switch stream.pace {
                    case .window where !isConnected, .times where !isConnected: throw Self.early(number)
                    default: awaited = awaited || !isConnected
                    }
                    if let users = stream.users, users > self.users {
                        throw LoadScenarioError(
                            place: "steps[\(number)].users", expected: "at most the \(self.users) users there are")
                    }
                }
            }
        }
        if awaited {
            throw LoadScenarioError(place: "steps", expected: "a connect must follow pushes to devices that are away")
        }
    }

    private static func early(_ step: Int) -> LoadScenarioError {
        LoadScenarioError(place: "steps[\(step)]", expected: "a connect must come before it")
    }
}
