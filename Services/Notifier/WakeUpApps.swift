import Foundation

/// The file that says which apps are woken, and how.
struct WakeUpApps: Decodable {
    /// One instance's app.
    struct App: Decodable {
        let instanceId: String
        let apns: APNs?
        let fcm: FCM?
    }

    /// Apple's push service, by token authentication.
    struct APNs: Decodable {
        /// The key as Apple gives it, PEM of PKCS #8.
        let keyFile: String
        let keyId: String
        let teamId: String
        /// The app's bundle id.
        let topic: String
        /// Of the sandbox: `https://api.sandbox.push.apple.com`.
        let url: String?
    }

    /// Firebase Cloud Messaging, HTTP v1.
    struct FCM: Decodable {
        /// JSON of the service account, as Google gives it.
        let serviceAccountFile: String
        let url: String?
    }

    let apps: [App]
}

/// Why a file of the notifier cannot be used, and what to do.
struct FileProblem: Error, CustomStringConvertible {
    let description: String

    /// The bytes of a file.
    static func contents(of path: String, named name: String) throws(FileProblem) -> Data {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw FileProblem(description: "\(name): the file \(path) cannot be read; check its path and its rights")
        }
        return data
    }

    /// The JSON of a file.
    static func json<Content: Decodable>(_: Content.Type, of path: String, named name: String) throws(FileProblem)
        -> Content
    {
        let data = try contents(of: path, named: name)
        do {
            return try JSONDecoder().decode(Content.self, from: data)
        } catch DecodingError.keyNotFound(let key, let context) {
            let place = (context.codingPath + [key]).map(\.stringValue).joined(separator: ".")
            throw FileProblem(description: "\(name): \(path) lacks \(place)")
        } catch {
            throw FileProblem(description: "\(name): \(path) is not the JSON that is wanted: \(error)")
        }
    }
}
