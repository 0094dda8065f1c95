import Foundation

/// The file with the apps to wake and their push providers.
struct WakeUpApps: Decodable {
    /// The app of one instance.
    struct App: Decodable {
        let instanceId: String
        let apns: APNs?
        let fcm: FCM?
    }

    /// Apple's push service, with token authentication.
    struct APNs: Decodable {
        /// The path of the key from Apple, PEM of PKCS #8.
        let keyFile: String
        let keyId: String
        let teamId: String
        /// The app's bundle id.
        let topic: String
        /// A nil value means: the production service. The sandbox is `https://api.sandbox.push.apple.com`.
        let url: String?
    }

    /// Firebase Cloud Messaging, HTTP v1.
    struct FCM: Decodable {
        /// The path of the service account file from Google, JSON.
        let serviceAccountFile: String
        let url: String?
    }

    let apps: [App]
}

/// The reason why a file of the notifier cannot be used, and its remedy.
struct FileProblem: Error, CustomStringConvertible {
    let description: String

    /// The bytes of a file.
    static func contents(of path: String, named name: String) throws(FileProblem) -> Data {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw FileProblem(
                description: "\(name): the file \(path) cannot be read; check its path and its permissions")
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
            throw FileProblem(description: "\(name): \(path) is not the expected JSON: \(error)")
        }
    }
}
