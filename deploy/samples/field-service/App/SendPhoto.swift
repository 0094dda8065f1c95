import ClientServices
import Foundation
import MobileSync
import OfflineResources

/// A photo that is not sent yet.
struct WaitingPhoto: Codable, Hashable, Sendable {
    /// A path; relative to the folder of the installation, which an update of an iOS app can move.
    var file: String
    /// The entity tag of the photo that the user saw and replaces; nil: there was none.
    var replaced: String?
}

/// A photo, with progress.
extension FieldApp {
    /// Sends a photo and reports the progress. It waits for a network and for a restart, until the backend refuses it.
    func send(
        _ photo: WaitingPhoto, of id: String, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws {
        let note = try keep(photo, of: id)
        do {
            _ = try await resources.files.upload(
                URL(filePath: photo.file, relativeTo: device.folder), to: "/photos/\(id)", contentType: "image/jpeg",
                basedOn: photo.replaced, waitsForNetwork: true, progress: progress)
            try note.remove()
        } catch let error as ResourceError where [.conflict, .refused, .file].contains(error.code) {
            try note.remove()
            throw error
        }
    }
}

/// A note that a photo is not sent yet, in the store of the user who sends it. A later sign-in does not change the user.
private struct PhotoNote {
    let store: KeyValueStore?
    let key: String

    func remove() throws { try store?.remove([key]) }
}

extension FieldApp {
    /// Stores a photo until it is sent.
    ///
    /// - Throws: `FieldError` while another photo of the incident waits.
    private func keep(_ photo: WaitingPhoto, of id: String) throws -> PhotoNote {
        let note = PhotoNote(store: device.stores.user, key: "photo/\(id)")
        if let waiting: WaitingPhoto = try note.store?.value(note.key), waiting != photo {
            throw FieldError("another photo of \(id) waits; send the next one after it")
        }
        try note.store?.set(photo, for: note.key)
        return note
    }

    /// Returns the photos that an earlier run has not sent, by incident.
    func waitingPhotos() throws -> [String: WaitingPhoto] {
        var photos: [String: WaitingPhoto] = [:]
        for key in try device.stores.user?.keys(prefix: "photo/") ?? [] {
            photos[String(key.dropFirst("photo/".count))] = try device.stores.user?.value(key)
        }
        return photos
    }

    /// Returns the photo of an incident, from the cache without a network; nil: there is none.
    func photo(of id: String) async throws -> [UInt8]? { try await resources.fetchFile("/photos/\(id)")?.body }
}
