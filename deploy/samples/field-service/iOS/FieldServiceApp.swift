// Not compiled here: SwiftUI needs Apple's SDK. The folder App beside it is compiled and tested on Linux.
import Logging
import SwiftUI

/// The field service app for iOS 16 and newer. Its target has the files of this folder and of the folder App, and
/// `meta.config` among its resources.
@main
struct FieldServiceApp: App {
    @StateObject private var model = FieldModel()

    var body: some Scene {
        WindowGroup {
            NavigationStack {
                if model.app == nil { SignInView(model: model) } else { IncidentList(model: model) }
            }
            .task { await model.open() }
            .task(id: model.user) { if let app = model.app { await model.follow(app) } }
            .alert("Field service", isPresented: $model.isFailed) {
            } message: {
                Text(model.failure)
            }
        }
    }
}
